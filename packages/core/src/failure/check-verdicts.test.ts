import { Limiter } from '../limiter.js'
import type { Verdict } from '../store.js'

const nothing = async (): Promise<void> => {}

describe.each([true, false])('a store (shared: %s) that breaks its promises', (shared) => {
  const rejections: [string, unknown, string][] = [
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['text', 'oops', '"oops"'],
    ['an object', { status: 500 }, 'an object (status)'],
    ['an object without a prototype', Object.create(null), 'an object ()'],
    ['an error of another realm', { message: 'oops' }, 'oops'],
  ]
  const answers: [string, unknown][] = [
    ['nothing', undefined],
    ['no verdict', []],
    ['an empty place', [null]],
    ['a verdict that says nothing', [{}]],
    ['text', 'x'],
    ['too much', [{ allowed: true }, { allowed: true }]],
  ]

  const limiterOn = (consume: () => Promise<readonly Verdict[]>, errors: Error[]): Limiter =>
    new Limiter({
      store: { shared, consume, peek: consume, refund: nothing, reset: nothing, close: nothing },
      limit: 3,
      window: '1m',
      onStoreError: 'deny',
      onEvent: (event) => event.type === 'store-error' && errors.push(event.error),
      logger: { warn: () => {} },
    })

  it.each(rejections)('by rejecting with %s has failed', async (_, reason, message) => {
    const errors: Error[] = []
    const limiter = limiterOn(() => Promise.reject(reason), errors)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(errors).toEqual([new Error(message)])
  })

  it.each(answers)('by answering with %s has failed', async (_, answer) => {
    const errors: Error[] = []
    const limiter = limiterOn(async () => answer as Verdict[], errors)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(errors).toMatchObject([{ code: 'SLUICE_STORE_FAILED' }])
  })

  it.each(rejections)('by rejecting a refund with %s is told of', async (_, reason, message) => {
    const errors: Error[] = []
    limiterOn(async () => [], errors).refundFailed(reason)
    expect(errors).toEqual([new Error(message)])
  })
})
