// One flood, in a process of its own. Argument: `limiter`, or `loop` for the control.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { Limiter, MemoryStore } from '@sluice/core'

const requests = 1_000_000
const keys = Array.from({ length: requests }, () => `ip:${Math.random().toString(36).slice(2)}`)
const store = new MemoryStore()
const limiter = new Limiter({ store, limit: 100, window: '1m' })
const target = process.argv[2] === 'limiter' ? limiter : { consume: async () => {} }

const calls = new Float64Array(requests)
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
const start = performance.now()
for (let i = 0; i < requests; i++) {
  const sent = performance.now()
  await target.consume({ key: keys[i] })
  calls[i] = performance.now() - sent
  if (i % 100 === 0) await turn()
}
const seconds = (performance.now() - start) / 1000
delays.disable()
calls.sort()
console.log(
  JSON.stringify({
    longest: calls[requests - 1],
    p9999: calls[Math.floor(requests * 0.9999)],
    delay: delays.max / 1e6,
    size: store.size,
    perSecond: requests / seconds,
  }),
)
