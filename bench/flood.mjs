// Pauses of a MemoryStore under a flood of random keys, beside an empty loop over the same keys.
import { report, runAlone, table, thousands } from './report.mjs'

const names = { loop: 'empty loop', limiter: '`limiter.consume`' }
const runs = ['loop', 'limiter', 'loop', 'limiter', 'loop', 'limiter'].map((what) => ({
  what,
  ...runAlone('flood-run.mjs', what),
}))

const ms = (number) => number.toFixed(2)
report('flood', 'Pauses under a flood', '', [
  'A million requests, each of a random key of its own, on a `MemoryStore` of 100,000 keys under the default algorithm, three times; the loop yields to the event loop after every 100. The control awaits an empty async function with the same keys. Milliseconds.',
  table(
    [
      '',
      'longest single call',
      '99.99 % of calls below',
      'longest event-loop delay',
      'keys held',
      'requests per second',
    ],
    runs.map(({ what, longest, p9999, delay, size, perSecond }) => [
      names[what],
      ms(longest),
      ms(p9999),
      ms(delay),
      thousands(size),
      thousands(perSecond),
    ]),
  ),
])
