import { blockPolicy } from './block/block.js'
import { CENTURY_US } from './bucket.js'
import { algorithms } from './index.js'

const pack = (of: object) => (of as { packing: NonNullable<(typeof algorithms)['gcra']['packing']> }).packing

const most = { us: 2 ** 53 - 1, units: 1e9, unit: 1e9 + 2 ** 31 }

describe('a state packed into numbers', () => {
  it.each<[string, object, object]>([
    ['fixed-window', algorithms['fixed-window'], { startUs: most.us, used: most.units }],
    [
      'sliding-window-counter',
      algorithms['sliding-window-counter'],
      { index: most.us, previous: most.units, current: most.units - 1 },
    ],
    [
      'token-bucket',
      algorithms['token-bucket'],
      { tokens: most.units, steps: 400 * 86_400_000_000 - 1, lastUs: most.us, unit: most.unit },
    ],
    [
      'gcra',
      algorithms.gcra,
      { paidUs: most.us, steps: most.units - 1, unit: most.unit, longUs: CENTURY_US },
    ],
    [
      'leaky-bucket',
      algorithms['leaky-bucket'],
      { paidUs: most.us, steps: most.units - 1, unit: most.unit, longUs: CENTURY_US },
    ],
    ['a block', blockPolicy(), { endUs: most.us }],
  ])('is the same when it is unpacked, beside others and at its largest: %s', (_, of, state) => {
    const { pack: write, unpack } = pack(of)
    const wide = new Float64Array(12)
    const numbers = { wide, narrow: new Uint32Array(wide.buffer) }
    for (const at of [0, 4, 8]) write(state as never, numbers, at)
    for (const at of [0, 4, 8]) expect(unpack(numbers, at)).toEqual(state)
    // The last of the four doubles is the store's.
    expect([wide[3], wide[7], wide[11]]).toEqual([0, 0, 0])
  })
})
