import { join } from 'node:path'
import { startProgram, urlIn } from '../program.js'

const program = (name: string): string => join(__dirname, name)

describe('the example for Cloudflare', () => {
  test('limits all requests, and logins on their own', async () => {
    const url = urlIn(await startProgram(program('server.mjs'), {}, '\n', 'ignore'))
    expect(await (await fetch(url)).json()).toEqual({ remaining: 9 })
    const statuses: number[] = []
    let last = new Response()
    for (let i = 0; i < 4; i++) {
      last = await fetch(`${url}/login`, { method: 'POST' })
      statuses.push(last.status)
    }
    expect(statuses).toEqual([401, 401, 401, 429])
    expect(last.headers.get('ratelimit-policy')).toMatch(/^"api";q=10;w=10, "login";q=3;w=900$/)
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('writes the configuration that its server uses', async () => {
    const printed = await startProgram(program('config.mjs'), {}, 'migrations')
    expect(printed).toContain('{"name":"API","namespace_id":"1001","simple":{"limit":70,"period":60}}')
  })
})
