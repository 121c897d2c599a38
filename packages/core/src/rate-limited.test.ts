import { Limiter } from './limiter.js'
import { MemoryStore } from './memory-store.js'
import { definePlans } from './plans.js'
import { type DeniedError, type RateLimitedOptions, rateLimited } from './rate-limited.js'

const rule = { limit: 2, window: '1m', algorithm: 'fixed-window' } as const
const frozen = () => new MemoryStore({ nowUs: () => 0 })
const denied = (retryAfterMs: number) =>
  expect.objectContaining({
    code: 'SLUICE_DENIED',
    decision: expect.objectContaining({ allowed: false, retryAfterMs }),
  })

/** The names under which a store is asked to count. */
function recordingStore() {
  const store = frozen()
  const consume = jest.spyOn(store, 'consume')
  const limiters = () => [
    ...new Set(consume.mock.calls.flatMap(([checks]) => checks.map(({ key }) => key.split(':')[3]))),
  ]
  return { store, limiters }
}

describe('@rateLimited', () => {
  it('lets calls through with their arguments and their this until the limit, and then throws', async () => {
    class Mailer {
      sent: string[] = []
      @rateLimited({ ...rule, store: frozen(), key: (to: string) => to })
      async send(to: string, text: string): Promise<number> {
        return this.sent.push(`${to}: ${text}`)
      }
    }
    const mailer = new Mailer()
    expect(await mailer.send('ann', 'a')).toBe(1)
    expect(await mailer.send('ann', 'b')).toBe(2)
    await expect(mailer.send('ann', 'c')).rejects.toEqual(denied(60_000))
    expect(await mailer.send('bob', 'd')).toBe(3)
    expect(mailer.sent).toEqual(['ann: a', 'ann: b', 'bob: d'])
  })

  it.each<[string, object, string]>([
    ['quota', {}, 'Limiter "jobs" denied a call for want of quota. Retry after 60000 ms (SLUICE_DENIED)'],
    [
      'its cost',
      { cost: 3 },
      'Limiter "jobs" denied a call since it costs more than can ever pass. No wait helps (SLUICE_DENIED)',
    ],
  ])('says in the error that %s denied, and when to come back', async (_, options, message) => {
    class Jobs {
      @rateLimited({ ...rule, store: frozen(), name: 'jobs', key: () => 'all', ...options })
      async run(): Promise<void> {}
    }
    const jobs = new Jobs()
    const errors = (await Promise.allSettled([jobs.run(), jobs.run(), jobs.run()])) as PromiseRejectedResult[]
    const error = errors.at(-1)?.reason
    expect(error).toMatchObject({ name: 'SluiceError', message })
    expect(error).not.toHaveProperty('cause')
  })

  it('answers with onLimited instead, which gets decision, arguments and this', async () => {
    class Search {
      cached = 'cached'
      @rateLimited({
        ...rule,
        limit: 0,
        store: frozen(),
        key: (term: string) => term,
        onLimited(this: Search, decision, term) {
          return `${this.cached} ${term}, ${decision.reason}`
        },
      })
      async find(term: string): Promise<string> {
        return `fresh ${term}`
      }
    }
    expect(await new Search().find('tea')).toBe('cached tea, cost')
  })

  it('asks key, cost and plan, sync or async, with the arguments and the this of the call', async () => {
    const plans = definePlans({ free: { ...rule, limit: 5 }, pro: { ...rule, limit: 50 } })
    const limiter = new Limiter({ plans, store: frozen() })
    class Import {
      tenant = 'acme'
      @rateLimited({
        limiter,
        async key(this: Import, user) {
          return `${this.tenant}/${user}`
        },
        cost: (_user: string, rows: string[]) => rows.length,
        plan: async (user) => (user === 'ann' ? 'pro' : 'free'),
      })
      async load(_user: string, _rows: string[]): Promise<string> {
        return 'loaded'
      }
    }
    const tenant = new Import()
    await tenant.load('ann', ['a', 'b', 'c'])
    await tenant.load('bob', ['a'])
    await expect(tenant.load('bob', ['a', 'b', 'c', 'd', 'e'])).rejects.toEqual(denied(60_000))
    expect(await limiter.peek({ key: 'acme/ann', plan: 'pro', cost: 0 })).toMatchObject({ remaining: 47 })
    expect(await limiter.peek({ key: 'acme/bob', plan: 'free', cost: 0 })).toMatchObject({ remaining: 4 })
  })

  it.each<[string, Partial<RateLimitedOptions>, object]>([
    ['a key function throws', { key: () => raise(new Error('no key')) }, { message: 'no key' }],
    ['a key function gives nothing', { key: () => undefined as never }, { code: 'SLUICE_BAD_KEY' }],
    ['a cost function gives nothing', { cost: () => undefined as never }, { code: 'SLUICE_BAD_COST' }],
  ])('charges and runs nothing when %s', async (_, options, error) => {
    const store = frozen()
    const limiter = new Limiter({ ...rule, store })
    const run = jest.fn()
    class Jobs {
      @rateLimited({ limiter, key: () => 'k', ...options })
      async run(): Promise<void> {
        run()
      }
    }
    await expect(new Jobs().run()).rejects.toMatchObject(error)
    expect(run).not.toHaveBeenCalled()
    expect(await limiter.peek({ key: 'k', cost: 0 })).toMatchObject({ remaining: 2 })
  })

  it('lets what the method throws pass', async () => {
    class Jobs {
      @rateLimited({ ...rule, store: frozen(), key: () => 'k' })
      async run(): Promise<void> {
        throw new Error('its own')
      }
    }
    await expect(new Jobs().run()).rejects.toThrow('its own')
  })

  it('holds a call that a leaky bucket accepts until its departure', async () => {
    const limiter = new Limiter({ store: frozen(), algorithm: 'leaky-bucket', limit: 50, window: '1s' })
    jest.useFakeTimers()
    try {
      const pushed: string[] = []
      class Feed {
        @rateLimited({ limiter, key: () => 'k' })
        async push(item: string): Promise<void> {
          pushed.push(item)
        }
      }
      const feed = new Feed()
      const calls = Promise.all(['a', 'b', 'c'].map((item) => feed.push(item)))
      await jest.advanceTimersByTimeAsync(19)
      expect(pushed).toEqual(['a'])
      await jest.advanceTimersByTimeAsync(1)
      expect(pushed).toEqual(['a', 'b'])
      await jest.advanceTimersByTimeAsync(20)
      await calls
      expect(pushed).toEqual(['a', 'b', 'c'])
    } finally {
      jest.useRealTimers()
    }
  })

  it('makes one limiter for all instances and subclasses, named after the class that defines the method', async () => {
    const { store, limiters } = recordingStore()
    class Mailer {
      @rateLimited({ ...rule, store, key: () => 'k' })
      async send(): Promise<void> {}
      @rateLimited({ ...rule, store, key: () => 'k' })
      static async flush(): Promise<void> {}
    }
    class Newsletter extends Mailer {
      override async send(): Promise<void> {
        await super.send()
      }
    }
    await new Newsletter().send()
    await new Mailer().send()
    await expect(new Mailer().send()).rejects.toEqual(denied(60_000))
    await Newsletter.flush()
    expect(limiters()).toEqual(['Mailer.send', 'Mailer.flush'])
  })

  it('takes a name that is given, and then finds one taken where the class is defined', async () => {
    const { store, limiters } = recordingStore()
    const define = () =>
      class {
        @rateLimited({ ...rule, store, name: 'mails', key: () => 'k' })
        async #send(): Promise<void> {}
        send(): Promise<void> {
          return this.#send()
        }
      }
    await new (define())().send()
    expect(limiters()).toEqual(['mails'])
    expect(define).toThrow(expect.objectContaining({ code: 'SLUICE_DUPLICATE_NAME' }))
  })

  it('has its name beneath another decorator, and asks for one where two classes may be meant', async () => {
    const wrapped = <M extends (...args: never[]) => unknown>(method: M, _: ClassMethodDecoratorContext): M =>
      ((...args) => method(...args)) as M
    const { store, limiters } = recordingStore()
    class Mailer {
      @wrapped
      @rateLimited({ ...rule, store, name: undefined, key: () => 'k' })
      async send(): Promise<void> {}
    }
    class Newsletter extends Mailer {
      override async send(): Promise<void> {}
    }
    expect(() => new Newsletter()).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION', path: ['name'] }),
    )
    new Mailer()
    await Mailer.prototype.send()
    expect(limiters()).toEqual(['Mailer.send'])
  })

  it('is a decorator of experimentalDecorators too', async () => {
    const { store, limiters } = recordingStore()
    class Mailer {
      text = 'hello'
      async send(to: string): Promise<string> {
        return `${this.text} ${to}`
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Mailer.prototype, 'send') as TypedPropertyDescriptor<
      Mailer['send']
    >
    rateLimited({ ...rule, store, key: (to: string) => to })(Mailer.prototype, 'send', descriptor)
    Object.defineProperty(Mailer.prototype, 'send', descriptor)
    const mailer = new Mailer()
    expect([await mailer.send('ann'), await mailer.send('ann')]).toEqual(['hello ann', 'hello ann'])
    await expect(mailer.send('ann')).rejects.toEqual(denied(60_000))
    expect(limiters()).toEqual(['Mailer.send'])
  })

  it('types the error it throws', async () => {
    class Jobs {
      @rateLimited({ ...rule, limit: 0, key: () => 'k' })
      async run(): Promise<void> {}
    }
    const error: DeniedError = await new Jobs().run().then(
      () => raise(new Error('ran')),
      (reason) => reason,
    )
    expect(error.decision.key).toBe('k')
  })

  it('fits no method whose arguments or result it does not', () => {
    const byId = rateLimited({ ...rule, key: (id: string) => id })
    class Wrong {
      // @ts-expect-error the key is made of a string
      @byId
      async number(_id: number): Promise<void> {}
      // @ts-expect-error a limited method returns a promise
      @byId
      sync(_id: string): number {
        return 1
      }
    }
    expect(new Wrong()).toBeDefined()
  })
})

describe('mistakes in the options of @rateLimited are errors where the class is defined', () => {
  const key = () => 'k'
  const plans = definePlans({ free: rule })
  const limiter = new Limiter({ ...rule, store: frozen() })
  test.each<[string, object | undefined, string, string]>([
    ['no options', undefined, 'SLUICE_BAD_OPTION', 'options'],
    ['no key', { ...rule }, 'SLUICE_BAD_OPTION', 'key'],
    ['a key as text', { ...rule, key: 'k' }, 'SLUICE_BAD_OPTION', 'key'],
    ['no limit', { key }, 'SLUICE_BAD_OPTION', 'limit'],
    ['a misspelt option', { ...rule, key, limt: 1 }, 'SLUICE_UNKNOWN_OPTION', 'limt'],
    ['a negative cost', { ...rule, key, cost: -1 }, 'SLUICE_BAD_OPTION', 'cost'],
    ['an onLimited that is no function', { ...rule, key, onLimited: null }, 'SLUICE_BAD_OPTION', 'onLimited'],
    ['a plan without plans', { ...rule, key, plan: 'free' }, 'SLUICE_BAD_OPTION', 'plan'],
    ['plans without a plan', { plans, key }, 'SLUICE_BAD_OPTION', 'plan'],
    ['a plan that does not exist', { plans, key, plan: 'gold' }, 'SLUICE_BAD_OPTION', 'plan'],
    ['a limiter that is none', { limiter: {}, key }, 'SLUICE_BAD_OPTION', 'limiter'],
    ['a limiter and its options', { limiter, key, window: '1m' }, 'SLUICE_UNKNOWN_OPTION', 'window'],
  ])('%s', (_, options, code, option) => {
    expect(() => rateLimited(options as RateLimitedOptions)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(`\`${option}\``) }),
    )
  })

  const method = async (): Promise<void> => {}
  test.each<[string, unknown[]]>([
    ['a class', [class {}, { kind: 'class', name: 'C' }]],
    ['a field', [undefined, { kind: 'field', name: 'f' }]],
    ['a property of experimentalDecorators', [{}, 'f']],
    ['an accessor of experimentalDecorators', [{}, 'f', { get: () => 1 }]],
    ['a private method without a name', [method, { kind: 'method', name: '#m', private: true }]],
  ])('standing on %s', (_, args) => {
    const decorate = rateLimited({ ...rule, key }) as (...of: unknown[]) => unknown
    expect(() => decorate(...args)).toThrow(expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }))
  })
})

function raise(error: Error): never {
  throw error
}
