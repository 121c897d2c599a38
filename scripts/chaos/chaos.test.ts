import { faults } from './faults.cjs'
import { type Fault, run } from './run.cjs'
import { tally } from './tally.cjs'

const size = { requests: 480, perSecond: 200, timeoutMs: 100 }
/** For decisions that no fault makes late, so that a busy machine makes none late either. */
const ample = { ...size, timeoutMs: 5000 }

function named(name: string): Fault {
  const fault = faults.find((each) => each.name === name)
  if (!fault) throw new Error(`There is no fault named ${name}.`)
  return fault
}

/** What is not as it should be, times apart. */
function complaints({ broken, strained, cells }: ReturnType<typeof tally>): string[] {
  return [...broken, ...strained, ...cells.flatMap((cell) => [...cell.broken, ...cell.strained])]
}

test.each(['connections refused', 'traffic held', 'killed, restarted empty', 'SIGSTOP, SIGCONT'])(
  'under load, %s: each mode keeps its promise, nothing is thrown, the outage is told once',
  async (name) => {
    const fault = named(name)
    expect(complaints(tally(fault, await run(fault, size), size))).toEqual([])
  },
)

test('under load, SCRIPT FLUSH again and again: the store makes every decision, and counts exactly', async () => {
  const fault = named('SCRIPT FLUSH every 20 ms')
  const tallied = tally(fault, await run(fault, ample), ample)
  expect(complaints(tallied)).toEqual([])
  expect(tallied.cells.map(({ degraded }) => degraded.all)).toEqual([0, 0, 0])
  expect(tallied.cells.map(({ admitted, held }) => held - admitted)).toEqual([0, 0, 0])
})
