import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

interface Service {
  readonly profiles?: readonly string[]
  readonly ports?: readonly string[]
  readonly network_mode?: string
  readonly environment?: { readonly PORT: number }
}

const text = readFileSync(join(__dirname, '../docker-compose.yml'), 'utf8')
const services: ReadonlyMap<string, Service> = new Map(Object.entries(parse(text, { merge: true }).services))

/** The ports of a profile, whose ranges are the same on both sides: `127.0.0.1:7001-7006:7001-7006`. */
function publishedPorts({ ports = [] }: Service): number[] {
  return ports.flatMap((port) => {
    const [, from, to, inside] = /^127\.0\.0\.1:(\d+)-(\d+):(.+)$/.exec(port) ?? []
    expect(inside).toBe(`${from}-${to}`)
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, i) => Number(from) + i)
  })
}

describe('docker-compose.yml', () => {
  test('publishes every port on 127.0.0.1 alone', () => {
    const ports = [...services.values()].flatMap((service) => service.ports ?? [])
    expect(ports).toHaveLength(4)
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
    expect([...services.values()].filter((service) => service.network_mode === 'host')).toEqual([])
  })

  test.each([
    ['cluster', 6],
    ['sentinel', 6],
  ])(
    'has a profile %s of %i nodes, each at the same 127.0.0.1 address on the host as inside',
    (profile, count) => {
      const members = [...services].filter(([, service]) => service.profiles?.includes(profile))
      const nodes = members.filter(([name]) => name !== profile).map(([, service]) => service)
      expect(nodes).toHaveLength(count)
      expect(nodes.every((node) => node.network_mode === `service:${profile}`)).toBe(true)
      expect(publishedPorts(services.get(profile) as Service)).toEqual(
        nodes.map((node) => node.environment?.PORT),
      )
    },
  )
})
