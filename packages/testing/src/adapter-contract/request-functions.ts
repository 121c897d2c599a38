import { MemoryStore, type RequestContext, type SluiceError } from '@sluice/core'
import { send } from './http-client.js'
import type { Sites } from './sites.js'

export function requestFunctionsTests(sites: Sites): void {
  describe('functions of the request that fail go to the error path once, and nothing is charged', () => {
    function throws(): never {
      throw new Error('no such account')
    }
    const rejects = () => Promise.reject(new Error('no such account'))
    const neverSettles = () => new Promise(() => {})
    type Failure = ['key' | 'cost' | 'limit' | 'skip', string, () => unknown, string]
    const failures: Failure[] = [
      ['key', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
      ['key', 'rejects', rejects, 'SLUICE_REQUEST_FUNCTION'],
      ['key', 'never settles', neverSettles, 'SLUICE_REQUEST_FUNCTION'],
      ['key', 'returns a number', () => 42, 'SLUICE_BAD_KEY'],
      ['key', 'returns an object', async () => ({}), 'SLUICE_BAD_KEY'],
      ['cost', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
      ['cost', 'returns -1', () => -1, 'SLUICE_BAD_COST'],
      ['cost', 'returns 1.5', () => 1.5, 'SLUICE_BAD_COST'],
      ['cost', 'returns NaN', async () => Number.NaN, 'SLUICE_BAD_COST'],
      ['cost', 'returns text', () => '3', 'SLUICE_BAD_COST'],
      ['limit', 'rejects', rejects, 'SLUICE_REQUEST_FUNCTION'],
      ['limit', 'returns NaN', () => Number.NaN, 'SLUICE_BAD_LIMIT'],
      ['limit', 'returns text', async () => '10', 'SLUICE_BAD_LIMIT'],
      ['cost', 'returns nothing', () => undefined, 'SLUICE_BAD_COST'],
      ['limit', 'returns nothing', () => undefined, 'SLUICE_BAD_LIMIT'],
      ['skip', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
      ['skip', 'never settles', neverSettles, 'SLUICE_REQUEST_FUNCTION'],
    ]
    test.each(failures)('%s %s B55', async (option, does, fails, code) => {
      const fine = { key: 'k', cost: 1, limit: 5, skip: false }[option]
      const server = await sites.serveLimited({
        name: 'api',
        limit: 5,
        // A budget as short as that is for a store that does not have to be asked over a network.
        ...(does === 'never settles' && { timeoutMs: 20, store: new MemoryStore() }),
        [option]: (_request: unknown, { header }: RequestContext) => (header('x-bad') ? fails() : fine),
      })
      expect((await send(server, { headers: { 'x-bad': '1' } })).status).toBe(500)
      expect(server.errors).toHaveLength(1)
      expect((server.errors[0] as SluiceError).code).toBe(code)
      expect(server.handled).toHaveLength(0)
      expect((await send(server)).headers['ratelimit-remaining']).toBe('4')
      expect(server.errors).toHaveLength(1)
    })

    test('the message names option and limiter, and the cause is kept', async () => {
      const server = await sites.serveLimited({ name: 'api', limit: 5, key: throws })
      await send(server)
      expect(server.errors[0]).toMatchObject({
        message: 'Option `key` of limiter "api" threw (SLUICE_REQUEST_FUNCTION)',
        cause: new Error('no such account'),
      })
    })
  })
}
