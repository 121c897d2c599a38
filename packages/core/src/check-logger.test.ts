import { errorOf } from '../test/error-of.js'
import { checkLogger } from './check-logger.js'

test('takes what has a method `warn`, as it is', () => {
  expect(checkLogger(console)).toBe(console)
})

test.each([undefined, null, 1, 'console', {}, { warn: true }, () => {}])(
  'does not take %p',
  async (logger) => {
    const { code, path, message } = await errorOf(() => checkLogger(logger))
    expect([code, path]).toEqual(['SLUICE_BAD_OPTION', ['logger']])
    expect(message).toContain('Expected an object with a method `warn`.')
  },
)
