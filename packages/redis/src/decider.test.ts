import { EventEmitter } from 'node:events'
import { type Check, resolvePolicy } from '@sluice/core'
import type { Cluster } from 'ioredis'
import { Decider } from './decider.js'
import { slotOf } from './slot.js'
import { clusterNodes } from './topology.js'
import type { Call } from './wire.js'

const policy = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1h' })
const hourUs = 3_600_000_000
const startUs = 1_800_000_000_000_000

class FakeCluster extends EventEmitter {
  readonly options = { keyPrefix: 'app:' }
  readonly slots: string[][] = []
}

/** A Cluster whose nodes have clocks of their own, and answer a script as late as those say. */
class FakeNodes {
  readonly client = new FakeCluster()
  readonly topology = clusterNodes(this.client as unknown as Cluster, true)
  readonly aheadUs: Record<string, number> = {}
  readonly asked: string[] = []
  /** Where a call ends up that was sent to the first of the names. */
  readonly moved = new Map<string, string>()

  linked(): undefined {}

  corked(send: () => void): void {
    send()
  }

  async run({ keys: [key], argument }: Call): Promise<Buffer> {
    const slot = this.topology.slotOf(key as string)
    const notAfterUs = new DataView(argument.buffer).getFloat64(0, true)
    let name = this.client.slots[slot]?.[0] as string
    if (this.moved.has(name)) {
      name = this.moved.get(name) as string
      this.client.slots[slot] = [name]
    }
    this.asked.push(name)
    const nowUs = startUs + (this.aheadUs[name] ?? 0) + Math.floor(performance.now() * 1000)
    const reply = Buffer.alloc(8 * (1 + 5))
    reply.writeDoubleLE(nowUs, 0)
    reply.writeDoubleLE(nowUs > notAfterUs ? -1 : 1, 8)
    return reply
  }
}

describe('the clocks of the nodes of a Cluster', () => {
  let nodes: FakeNodes
  let decider: Decider
  beforeEach(() => {
    nodes = new FakeNodes()
    nodes.client.slots[slotOf('a')] = ['one:1']
    nodes.client.slots[slotOf('b')] = ['two:2']
    nodes.aheadUs['two:2'] = hourUs
    decider = new Decider(nodes, 'p:')
  })

  async function decide(tag: string): Promise<string[]> {
    nodes.asked.length = 0
    const check: Check = { key: `{${tag}}`, policy, least: 1, most: 1 }
    await decider.decide([check], { timeoutMs: 60_000 }, true)
    return [...nodes.asked]
  }

  test('are learned of each node by its first answer, and are kept apart', async () => {
    expect(await decide('a')).toEqual(['one:1', 'one:1'])
    expect(await decide('b')).toEqual(['two:2', 'two:2'])
    for (const tag of ['a', 'b', 'a', 'b']) expect(await decide(tag)).toHaveLength(1)
  })

  test('that are set forward cost one more call', async () => {
    await decide('a')
    nodes.aheadUs['one:1'] = hourUs
    expect(await decide('a')).toHaveLength(2)
    expect(await decide('a')).toHaveLength(1)
  })

  test('cost one more call when a slot moves to a node whose clock is ahead', async () => {
    await decide('a')
    nodes.moved.set('one:1', 'two:2')
    expect(await decide('a')).toEqual(['two:2', 'two:2'])
    expect(await decide('b')).toEqual(['two:2'])
  })

  test('are forgotten of a node that leaves', async () => {
    await decide('a')
    nodes.client.emit('-node', { options: { host: 'one', port: 1 } })
    expect(await decide('a')).toHaveLength(2)
  })

  test('never admit a call after its budget', async () => {
    await decide('a')
    const check: Check = { key: '{a}', policy, least: 1, most: 1 }
    await expect(decider.decide([check], { timeoutMs: 0 }, true)).rejects.toMatchObject({
      code: 'SLUICE_STORE_TIMEOUT',
    })
  })
})
