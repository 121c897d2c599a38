import {
  byApiKey,
  byPlan,
  definePlans,
  planByApiKey,
  type RequestContext,
  type SluiceError,
} from '@sluice/core'
import { limiterHeaders, send } from './http-client.js'
import { recordingLogger, type Sites, window } from './sites.js'

export function plansTests(sites: Sites): void {
  describe('plans', () => {
    const plans = definePlans({
      free: { ...window, limit: 1 },
      pro: [
        { ...window, name: 'burst', limit: 5 },
        { ...window, name: 'daily', limit: 50, window: '1d' },
      ],
      enterprise: 'unlimited',
    })
    const plan = (_: unknown, { header }: RequestContext): string | undefined => header('x-plan')
    const asked = (tier: string): { headers: Record<string, string> } => ({ headers: { 'x-plan': tier } })

    test('each request follows the policies of its plan', async () => {
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ plans, plan })] }))
      expect((await send(server, asked('free'))).headers['ratelimit-policy']).toBe('"1-per-1m";q=1;w=60')
      expect((await send(server, asked('pro'))).headers['ratelimit-policy']).toBe(
        '"burst";q=5;w=60, "daily";q=50;w=86400',
      )
      expect(server.handled.map((decision) => decision?.plan)).toEqual(['free', 'pro'])
    })

    test('an unlimited plan passes without quota headers', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ plans, plan: 'enterprise' })],
      }))
      const answer = await send(server)
      expect(answer.status).toBe(200)
      expect(limiterHeaders(answer)).toEqual({})
      expect(server.handled).toMatchObject([{ reason: 'unlimited', remaining: Number.POSITIVE_INFINITY }])
    })

    test.each(['gold', '__proto__', 'Free'])('an unknown plan %s goes to the error path', async (tier) => {
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ plans, plan })] }))
      expect((await send(server, asked(tier))).status).toBe(500)
      expect(server.errors.map((error) => (error as SluiceError).code)).toEqual(['SLUICE_UNKNOWN_PLAN'])
    })

    test('with defaultPlan an unknown plan follows it and is warned of once', async () => {
      const { lines, logger } = recordingLogger()
      const options = { plans, plan, defaultPlan: 'pro', logger }
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit(options)] }))
      await send(server, asked('gold'))
      await send(server, asked('gold'))
      await send(server)
      expect(server.handled.map((decision) => decision?.plan)).toEqual(['pro', 'pro', 'pro'])
      expect(lines).toEqual([
        'sluice: no plan is called "gold", so `defaultPlan` applies (SLUICE_UNKNOWN_PLAN)',
      ])
    })

    test('a lookup that fails goes to the error path, or to the plan that was last known', async () => {
      const lookup = (request: unknown, context: RequestContext): string | undefined => {
        if (context.header('x-plan') === 'fails') throw new Error('accounts are away')
        return plan(request, context)
      }
      const { logger } = recordingLogger()
      const options = { plans, plan: lookup, logger }
      for (const [onPlanError, status] of [
        ['throw', 500],
        ['last-known', 200],
      ] as const) {
        const server = await sites.serve(({ rateLimit }) => ({
          app: [rateLimit({ ...options, onPlanError })],
        }))
        await send(server, asked('pro'))
        expect((await send(server, asked('fails'))).status).toBe(status)
        expect(server.handled.every((decision) => decision?.plan === 'pro')).toBe(true)
        expect(server.handled).toHaveLength(status === 200 ? 2 : 1)
      }
    })

    test('byPlan counts all requests of a plan together', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ plans, plan, key: byPlan() })],
      }))
      await send(server, asked('free'))
      expect(server.handled[0]?.key).toBe('plan:free')
    })

    test('planByApiKey finds the plan of a key, and defaultPlan serves the others', async () => {
      const options = {
        plans,
        plan: planByApiKey({ 'k-1': 'pro' }),
        defaultPlan: 'free',
        key: byApiKey('x-api-key'),
      }
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit(options)] }))
      await send(server, { headers: { 'x-api-key': 'k-1' } })
      await send(server, { headers: { 'x-api-key': 'k-2' } })
      await send(server)
      expect(server.handled.map((decision) => decision?.plan)).toEqual(['pro', 'free', 'free'])
    })
  })
}
