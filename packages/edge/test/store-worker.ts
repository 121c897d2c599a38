import type { ConsumeOptions } from '@sluice/core'
import {
  DurableObjectStore,
  type ObjectNamespace,
  type ObjectStorage,
  RateLimitObject,
} from '../src/cloudflare/index.js'
import { decodeCall, type Question } from '../src/cloudflare/wire.js'

/** The clock of the timed objects, which share the isolate. */
let clockUs = 0

/** An object by the clock of the test, which can be told to die, and to wake. */
export class TimedObject extends RateLimitObject {
  readonly #state: { readonly storage: ObjectStorage; abort(): void }

  constructor(state: { readonly storage: ObjectStorage; abort(): void }, env: unknown) {
    super(state, env, { nowUs: () => clockUs })
    this.#state = state
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/abort') this.#state.abort()
    if (pathname === '/alarm') await this.alarm()
    if (pathname === '/alarm' || pathname === '/kept') {
      const { size } = await this.#state.storage.list({ prefix: '', limit: 10_000 })
      return Response.json({ keys: size, alarmMs: await this.#state.storage.getAlarm() })
    }
    return super.fetch(request)
  }
}

/** The same on the older kind of storage: a class has one. */
export class TimedKvObject extends TimedObject {}

export { RateLimitObject }

/** Of a test, in the path; each has its own. */
const stores = new Map<string, DurableObjectStore>()

/** `/<namespace>/<shards or 0>/call` runs calls on a store, `/<namespace>/<object>/<what>` tells an object. */
export default {
  async fetch(request: Request, env: Record<string, ObjectNamespace>): Promise<Response> {
    const { pathname } = new URL(request.url)
    const [, binding = '', target = '', what] = pathname.split('/')
    const namespace = env[binding] as ObjectNamespace
    clockUs = Number(request.headers.get('now-us'))
    if (what !== 'call') {
      const stub = namespace.get(namespace.idFromName(decodeURIComponent(target)) as never)
      return stub.fetch(`https://sluice/${what}`, {
        method: 'POST',
        body: await request.text(),
      }) as Promise<Response>
    }
    const at = `${binding} ${target}`
    const store =
      stores.get(at) ?? new DurableObjectStore(namespace, target === '0' ? {} : { shards: Number(target) })
    stores.set(at, store)
    const timeoutMs = Number(request.headers.get('timeout-ms'))
    const calls = (await request.json()) as string[]
    return Response.json(await Promise.all(calls.map((call) => run(store, decodeCall(call), { timeoutMs }))))
  },
}

async function run(store: DurableObjectStore, call: Question, options: ConsumeOptions): Promise<object> {
  try {
    if (call.method === 'refund') return { value: (await store.refund(call.refunds, options)) ?? null }
    if (call.method === 'reset') return { value: (await store.reset(call.keys, options)) ?? null }
    return { value: await store[call.method](call.checks, options) }
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string }
    return { code, message }
  }
}
