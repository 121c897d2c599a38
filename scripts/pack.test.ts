import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** A program that prints what became of two requests under a limit of one. */
interface Program {
  /** Names, and the module that they are imported or required from. */
  readonly imports: Readonly<Record<string, string>>
  readonly body: string
  readonly outcomes: readonly unknown[]
}

/** A program whose `server` sends two requests through a limiter. */
function overHttp(imports: Program['imports'], server: string): Program {
  const body = `
  const server = ${server}
  const url = 'http://127.0.0.1:' + server.address().port
  const outcomes = [(await fetch(url)).status, (await fetch(url)).status]
  server.close()
  server.closeAllConnections()`
  return { imports, body, outcomes: [200, 429] }
}

const programs: Readonly<Record<string, Program>> = {
  '@sluice/core': {
    imports: { '{ Limiter }': '@sluice/core', '{ loadPlans }': '@sluice/core/node' },
    body: `
  const limiter = new Limiter({ plans: await loadPlans('plans.json') })
  const outcomes = []
  for (let i = 0; i < 2; i += 1) {
    outcomes.push((await limiter.consume({ key: 'a', plan: 'free' })).allowed ? 200 : 429)
  }
  await loadPlans('plans.yaml').catch((error) => outcomes.push(error.code))`,
    outcomes: [200, 429, 'SLUICE_MISSING_PEER'],
  },
  '@sluice/redis': {
    imports: {
      '{ Limiter }': '@sluice/core',
      '{ RedisStore }': '@sluice/redis',
      '{ RedisRestStore }': '@sluice/redis/rest',
      '{ Redis }': 'ioredis',
    },
    body: `
  const client = new Redis(process.env.REDIS_URL, { lazyConnect: true })
  const store = new RedisStore(client, { prefix: process.env.PREFIX })
  const limiter = new Limiter({ store, limit: 1, window: '1d', timeoutMs: 20000, onStoreError: 'deny' })
  const outcomes = []
  for (let i = 0; i < 2; i += 1) outcomes.push((await limiter.consume({ key: 'a' })).reason)
  await store.close()
  client.disconnect()
  outcomes.push(new RedisRestStore({ url: 'https://redis.example', token: 'token' }).shared)`,
    outcomes: ['ok', 'quota', true],
  },
  '@sluice/express': overHttp(
    { express: 'express', '{ once }': 'node:events', '{ rateLimit }': '@sluice/express' },
    `express().use(rateLimit({ limit: 1, window: '1d' }), (_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')`,
  ),
  '@sluice/koa': overHttp(
    { Koa: 'koa', '{ once }': 'node:events', '{ rateLimit }': '@sluice/koa' },
    `new Koa().use(rateLimit({ limit: 1, window: '1d' })).use((ctx) => { ctx.body = '' }).listen(0, '127.0.0.1')
  await once(server, 'listening')`,
  ),
  '@sluice/fastify': overHttp(
    { Fastify: 'fastify', '{ rateLimit }': '@sluice/fastify' },
    `await (async (app) => {
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server
  })(Fastify().addHook('onRequest', rateLimit({ limit: 1, window: '1d' })).get('/', async () => ''))`,
  ),
  '@sluice/nestjs': overHttp(
    {
      '{ Controller, Get, Module }': '@nestjs/common',
      '{ APP_GUARD, NestFactory }': '@nestjs/core',
      '{ RateLimitGuard, RateLimitModule }': '@sluice/nestjs',
    },
    `await (async () => {
    class Root { get() { return '' } }
    class App {}
    Get()(Root.prototype, 'get', Object.getOwnPropertyDescriptor(Root.prototype, 'get'))
    Controller()(Root)
    Module({
      imports: [RateLimitModule.forRoot({ limit: 1, window: '1d' })],
      controllers: [Root],
      providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
    })(App)
    const app = await NestFactory.create(App, { logger: false })
    await app.listen(0, '127.0.0.1')
    return app.getHttpServer()
  })()`,
  ),
  '@sluice/edge': {
    imports: {
      '{ withRateLimit }': '@sluice/edge',
      '{ wranglerConfig }': '@sluice/edge/cloudflare',
      '{ viewerRequest }': '@sluice/edge/cloudfront',
      '{ FeedLimiter }': '@sluice/edge/feed',
    },
    body: `
  const handler = withRateLimit(() => new Response('ok'), { limit: 1, window: '1d', address: () => '10.1.2.3' })
  const outcomes = []
  for (let i = 0; i < 2; i += 1) outcomes.push((await handler(new Request('http://a.example/'))).status)
  outcomes.push(wranglerConfig([{ name: 'api', limit: 1, window: '1m' }]).includes('"API"'))
  outcomes.push(typeof viewerRequest, typeof FeedLimiter)`,
    outcomes: [200, 429, true, 'function', 'function'],
  },
  '@sluice/testing': {
    imports: { '{ MemoryStore }': '@sluice/core', '{ storeContract }': '@sluice/testing' },
    body: `
  const outcomes = []
  globalThis.describe = (name) => outcomes.push(name)
  storeContract('a store', () => new MemoryStore())`,
    outcomes: ['a store'],
  },
}

const root = dirname(__dirname)
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'))
afterAll(() => rmSync(folder, { recursive: true }))

const manifests = readdirSync(join(root, 'packages'))
  .map((name): Manifest => JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')))
  .filter((manifest) => !manifest.private)
const manifestOf = new Map(manifests.map((manifest) => [manifest.name, manifest]))

const tarballOf = ({ name, version }: Manifest): string =>
  join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)

beforeAll(async () => {
  const workspaces = manifests.flatMap(({ name }) => ['--workspace', name])
  await run('npm', ['pack', '--pack-destination', folder, ...workspaces], { cwd: root })
}, 120_000)

/** Installs a package from its tarball, and what its manifest says it needs: siblings too, the rest as links. */
async function install(project: string, manifest: Manifest): Promise<void> {
  const target = join(project, 'node_modules', manifest.name)
  mkdirSync(target, { recursive: true })
  await run('tar', ['-xzf', tarballOf(manifest), '-C', target, '--strip-components', '1'])
  const { dependencies, peerDependencies, peerDependenciesMeta } = manifest
  for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
    const sibling = manifestOf.get(name)
    if (sibling) await install(project, sibling)
    else if (!peerDependenciesMeta?.[name]?.optional) link(project, name)
  }
}

function link(project: string, name: string): void {
  const target = join(project, 'node_modules', name)
  mkdirSync(dirname(target), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), target)
}

const statement = {
  module: (names: string, from: string) => `import ${names} from '${from}'`,
  commonjs: (names: string, from: string) => `const ${names} = require('${from}')`,
}

describe.each(Object.keys(statement) as (keyof typeof statement)[])(
  'in an empty project of type %s',
  (type) => {
    test.each(manifests.map(({ name }) => name))(
      'the packed %s limits a request',
      async (name) => {
        const { imports, body, outcomes } = programs[name] as Program
        const project = mkdtempSync(join(folder, 'project-'))
        await install(project, manifestOf.get(name) as Manifest)
        // A peer that is optional is there for programs that use it.
        for (const from of Object.values(imports)) {
          if (!/^(node:|@sluice\/)/.test(from) && !existsSync(join(project, 'node_modules', from))) {
            link(project, from)
          }
        }
        writeFileSync(join(project, 'package.json'), JSON.stringify({ type }))
        writeFileSync(join(project, 'plans.json'), '{ "free": { "limit": 1, "window": "1d" } }')
        writeFileSync(join(project, 'plans.yaml'), 'free: { limit: 1, window: 1d }')
        const head = Object.entries(imports).map(([names, from]) => statement[type](names, from))
        const program = `${head.join('\n')}
async function main() {${body}
  console.log(JSON.stringify(outcomes))
}
main()`
        writeFileSync(join(project, 'index.js'), program)
        const env = { ...process.env, PREFIX: `test:${randomUUID()}` }
        const { stdout } = await run(process.execPath, ['index.js'], { cwd: project, env })
        expect(JSON.parse(stdout)).toEqual(outcomes)
      },
      60_000,
    )
  },
)

test('each public package has a program', () => {
  expect(Object.keys(programs).sort()).toEqual([...manifestOf.keys()].sort())
})
