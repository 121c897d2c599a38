import { errorOf } from '../test/error-of.js'
import { checkWhole } from './check-whole.js'

test.each([5, 6, 70_000])('takes %p, from 5 to 70,000', (value) => {
  expect(checkWhole('size', value, 5, 70_000)).toBe(value)
})

test.each([4, 70_001, 5.5, Number.NaN, Number.POSITIVE_INFINITY, '6', 6n, null, undefined])(
  'does not take %p',
  async (value) => {
    const { code, path, message } = await errorOf(() => checkWhole('size', value, 5, 70_000))
    expect([code, path]).toEqual(['SLUICE_BAD_OPTION', ['size']])
    expect(message).toContain('Expected a whole number from 5 to 70,000.')
  },
)

test('names the kind of number', async () => {
  const { message } = await errorOf(() => checkWhole('waitMs', 0, 1, 1000, 'whole milliseconds'))
  expect(message).toContain('Option `waitMs` is 0. Expected whole milliseconds from 1 to 1,000.')
})
