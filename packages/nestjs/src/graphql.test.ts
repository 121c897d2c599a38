import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo'
import { UseGuards } from '@nestjs/common'
import { GraphQLModule, Int, Mutation, Query, Resolver, Subscription } from '@nestjs/graphql'
import { type Client, createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { closeAfterTest, globalGuard, rateLimitModule, type Started, start } from '../test/start.js'
import { RateLimit, RateLimitGuard, requestOf, SkipRateLimit } from './index.js'

const minute = { window: '1m' }
let calls = 0
beforeEach(() => {
  calls = 0
})

@Resolver()
class Numbers {
  @RateLimit({ name: 'one', limit: 3, ...minute })
  @UseGuards(RateLimitGuard)
  @Query(() => Int, { nullable: true })
  one(): number {
    calls += 1
    return 1
  }

  @SkipRateLimit()
  @Query(() => Int)
  free(): number {
    return 0
  }

  @RateLimit({ limit: 1, ...minute })
  @Mutation(() => Int)
  add(): number {
    calls += 1
    return calls
  }

  @RateLimit({ limit: 1, ...minute })
  @Subscription(() => Int)
  async *ticks(): AsyncGenerator<{ ticks: number }> {
    yield { ticks: 1 }
    yield { ticks: 2 }
  }
}

interface Result {
  readonly data?: Record<string, unknown> | null
  readonly errors?: readonly {
    readonly message: string
    readonly path: unknown
    readonly extensions: unknown
  }[]
}

async function serve(options: object = { limit: 5, ...minute }): Promise<Started> {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    allowBatchedHttpRequests: true,
    subscriptions: { 'graphql-ws': true },
  })
  return start({ imports: [rateLimitModule(options), graphql], providers: [globalGuard, Numbers] })
}

async function ask<T = Result>({ url }: Started, body: object, headers = {}): Promise<T> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return (await response.json()) as T
}

/** How many fields were answered, and how many refused. */
function tally(...results: Result[]): { answered: number; refused: number } {
  const values = results.flatMap(({ data }) => Object.values(data ?? {}))
  return {
    answered: values.filter((value) => value !== null).length,
    refused: results.flatMap(({ errors }) => errors ?? []).length,
  }
}

describe('over GraphQL', () => {
  test('each field is charged by itself, aliases too, once for all guards', async () => {
    const app = await serve()
    const result = await ask(app, { query: '{ a: one b: one c: one }' })
    expect(result).toEqual({ data: { a: 1, b: 1, c: 1 } })
    expect(await app.limits.limiter('one').peek({ key: 'ip:127.0.0.1', cost: 0 })).toMatchObject({
      remaining: 0,
    })
    expect(await app.limits.limiter().peek({ key: 'ip:127.0.0.1', cost: 0 })).toMatchObject({ remaining: 2 })
  })

  test('the fields above the limit are refused, and their resolver does not run', async () => {
    const app = await serve()
    const aliases = Array.from({ length: 10 }, (_, i) => `a${i}: one`).join(' ')
    expect(tally(await ask(app, { query: `{ ${aliases} }` }))).toEqual({ answered: 3, refused: 7 })
    expect(calls).toBe(3)
  })

  test('each field of a batch is charged by itself', async () => {
    const app = await serve()
    const batch = Array.from({ length: 6 }, () => ({ query: '{ one }' }))
    const results = await ask<Result[]>(app, batch)
    expect(results).toHaveLength(6)
    expect(tally(...results)).toEqual({ answered: 3, refused: 3 })
    expect(calls).toBe(3)
  })

  test('a refusal tells why and for how long, and fields that are not limited are answered', async () => {
    const app = await serve({ limit: 100, ...minute })
    await ask(app, { query: 'mutation { add }' })
    const { errors } = await ask(app, { query: 'mutation { add }' })
    expect(errors).toMatchObject([
      {
        message: expect.stringMatching(/^Quota exceeded. Try again in \d+ seconds.$/),
        path: ['add'],
        extensions: { code: 'SLUICE_DENIED', reason: 'quota', retryAfterMs: expect.any(Number) },
      },
    ])
    expect(calls).toBe(1)
    expect(await ask(app, { query: '{ free }' })).toEqual({ data: { free: 0 } })
  })

  test('a refusal that no wait helps says so', async () => {
    const app = await serve({ limit: 0, ...minute })
    expect((await ask(app, { query: 'mutation { add }' })).errors).toMatchObject([
      { extensions: { code: 'SLUICE_DENIED', reason: 'cost', retryAfterMs: null } },
    ])
  })

  test('the key may be of the request behind it', async () => {
    const key = (context: Parameters<typeof requestOf>[0]): string | undefined =>
      requestOf<{ headers: Record<string, string> }>(context)?.headers['x-user']
    const app = await serve({ limit: 1, ...minute, key })
    const asked = { query: 'mutation { add }' }
    const results = [await ask(app, asked, { 'x-user': 'ada' }), await ask(app, asked, { 'x-user': 'bob' })]
    expect(tally(...results)).toEqual({ answered: 2, refused: 0 })
  })

  test('a subscription is charged when it begins, and not for its events', async () => {
    const app = await serve()
    const client: Client = createClient({
      url: `${app.url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
    })
    closeAfterTest({ close: async () => client.dispose() })
    const subscribe = async (): Promise<unknown[]> => {
      const received: unknown[] = []
      for await (const { data, errors } of client.iterate({ query: 'subscription { ticks }' })) {
        received.push(data?.ticks ?? errors?.[0]?.extensions?.code)
      }
      return received
    }
    expect(await subscribe()).toEqual([1, 2])
    expect(await subscribe()).toEqual(['SLUICE_DENIED'])
    const ofAddress = { key: 'ip:127.0.0.1', cost: 0 }
    expect(await app.limits.limiter('Numbers.ticks').peek(ofAddress)).toMatchObject({ remaining: 0 })
  })
})
