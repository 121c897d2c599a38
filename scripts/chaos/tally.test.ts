import { keysOf, limit, localShare, modes } from './load.cjs'
import type { Fault, Mode, Report, Row, Run } from './run.cjs'
import { tally } from './tally.cjs'

const size = { requests: 600, perSecond: 200, timeoutMs: 100 }
const startMs = 1000
const [beginsMs, endsMs] = [2000, 3000]

/** A run in which all went as it should, with an outage from {@link beginsMs} to {@link endsMs}. */
function goodRun(): Run {
  const report: Report = {
    rows: [],
    counted: [],
    storeErrors: { allow: {}, deny: {}, local: {} },
    down: ['gone'],
    up: 1,
    lines: ['down', 'up'],
    unhandled: [],
    warnings: [],
  }
  const used = new Map<string, number>()
  const use = (what: string, most: number) => {
    const count = (used.get(what) ?? 0) + 1
    if (count <= most) used.set(what, count)
    return count <= most
  }
  const answer = (mode: Mode, key: string, dueMs: number): Partial<Row> => {
    if (dueMs < beginsMs || dueMs >= endsMs) {
      const allowed = use(`${mode} ${key}`, limit)
      return { allowed, reason: allowed ? 'ok' : 'quota', source: 'store', degraded: false }
    }
    const { storeErrors } = report
    storeErrors[mode].SLUICE_STORE_DOWN = (storeErrors[mode].SLUICE_STORE_DOWN ?? 0) + 1
    if (mode !== 'local')
      return { allowed: mode === 'allow', reason: 'store-error', source: 'none', degraded: true }
    const allowed = use(`here ${key}`, localShare)
    return { allowed, reason: allowed ? 'ok' : 'quota', source: 'local', degraded: true }
  }
  for (const [i, key] of keysOf(size.requests).entries()) {
    const dueMs = startMs + (i * 1000) / size.perSecond
    for (const mode of modes) {
      const row = { mode, key, dueMs, askedMs: dueMs, settledMs: dueMs + 1, ...answer(mode, key, dueMs) }
      report.rows.push(row)
    }
  }
  return { report, strikes: 1, beginsMs, begunMs: beginsMs, awayMs: 1000, servedMs: endsMs, stallMs: 1 }
}

const outage: Fault = {
  name: 'outage',
  lab: () => Promise.reject(new Error('not played')),
  begin: () => {},
  misses: 'all',
}

/** What is said of a run, each thing once. */
function said(run: Run, fault: Partial<Fault> = {}): string[] {
  const { cells, broken, strained } = tally({ ...outage, ...fault }, run, size)
  const ofCells = cells.flatMap((cell) => [...cell.broken, ...cell.strained, ...cell.late])
  return [...new Set([...broken, ...strained, ...ofCells])]
}

/** Some requests of a mode, of those that were decided in one way. */
const rowsOf = ({ report }: Run, mode: Mode, like: Partial<Row>): Row[] =>
  report.rows.filter((row) => {
    return (
      row.mode === mode && Object.entries(like).every(([name, value]) => row[name as keyof Row] === value)
    )
  })

const change = (rows: Row[], count: number, to: Partial<Row>): void => {
  for (const row of rows.slice(0, count)) Object.assign(row, to)
}

const denied = { allowed: false, degraded: false }

describe('the tally of a fault', () => {
  test('says nothing of a run in which every promise was kept', () => {
    expect(said(goodRun())).toEqual([])
  })

  test.each<[string, (run: Run) => void, string]>([
    ['an unhandled rejection', ({ report }) => report.unhandled.push('oops'), 'unhandled rejections: oops'],
    [
      'a warning of the process',
      ({ report }) => report.warnings.push('leak'),
      'warnings of the process: leak',
    ],
    [
      'an outage told twice',
      ({ report }) => {
        report.down.push('gone')
        report.up = 2
        report.lines.push('down', 'up')
      },
      '2 times store-down for one outage',
    ],
    [
      'a store that never came up',
      ({ report }) => {
        report.up = 0
        report.lines.pop()
      },
      '1 times store-down and 0 times store-up',
    ],
    ['a missing line of the log', ({ report }) => report.lines.pop(), 'lines of the log: down'],
    ['a request without an answer', ({ report }) => report.rows.pop(), '599 of 600 requests were settled'],
    [
      'something thrown',
      (run) => change(rowsOf(run, 'deny', denied), 1, { thrown: 'TypeError: x', allowed: undefined }),
      'thrown: TypeError: x',
    ],
    [
      'more of a key than its limit',
      (run) => change(rowsOf(run, 'deny', { ...denied, key: 'often-2' }), 1, { allowed: true, reason: 'ok' }),
      'admitted beyond the bound: often-2: 13',
    ],
    [
      'a degraded decision without its event',
      (run) => change(rowsOf(run, 'allow', denied), 1, { degraded: true, reason: 'ok', allowed: true }),
      '200 store errors, 201 degraded decisions',
    ],
    [
      'a refusal where requests are to be served',
      (run) => change(rowsOf(run, 'allow', { degraded: true }), 1, { allowed: false }),
      'a request was refused for a store fault',
    ],
    [
      'a quota that nobody counted',
      (run) => change(rowsOf(run, 'allow', { degraded: true }), 1, { allowed: false, reason: 'quota' }),
      'a quota was made up',
    ],
    [
      'a request served where it is to be refused',
      (run) => change(rowsOf(run, 'deny', { degraded: true }), 1, { allowed: true }),
      'a request was served uncounted',
    ],
    [
      'more served here than the share of the process',
      (run) =>
        change(rowsOf(run, 'local', { source: 'local', allowed: false, key: 'often-2' }), 1, {
          allowed: true,
        }),
      '4 served locally of a key',
    ],
    [
      'a request that waited for longer than it may',
      (run) => change(rowsOf(run, 'deny', denied), 1, { settledMs: startMs + 3000 }),
      'a wait of',
    ],
    [
      'a store that was not asked again in time',
      (run) => {
        run.servedMs = endsMs - 2100
      },
      'normal after 2101 ms',
    ],
  ])('names %s', (_, spoil, what) => {
    const run = goodRun()
    spoil(run)
    expect(said(run).join()).toContain(what)
  })

  test('names what a fault without an outage cost', () => {
    expect(said(goodRun(), { misses: 'none' })).toEqual([
      'store-down: gone',
      '200 degraded decisions without an outage',
    ])
  })

  test('names a fault that cost nothing where it should have', () => {
    const run = goodRun()
    change(rowsOf(run, 'deny', { degraded: true }), 200, { degraded: false, reason: 'quota' })
    run.report.storeErrors.deny = {}
    expect(said(run)).toContain('the fault missed the store')
  })

  test.each<[string, Partial<Fault>, number, string[]]>([
    ['a whole limit more after a restart without the counts', { lives: 2 }, 12, []],
    ['no more than that', { lives: 2 }, 13, ['admitted beyond the bound: often-2: 25']],
    ['what the new master may lack', { takenOver: true }, 2, []],
    ['no more than that either', { takenOver: true }, 3, ['admitted beyond the bound: often-2: 15']],
  ])('grants %s', (_, fault, more, complaints) => {
    const run = goodRun()
    const after = rowsOf(run, 'deny', { ...denied, key: 'often-2' }).filter(({ dueMs }) => dueMs >= endsMs)
    change(after, more, { allowed: true, reason: 'ok' })
    const before = rowsOf(run, 'deny', { allowed: true, key: 'often-2' })
    change(before, 2, { settledMs: beginsMs - 50 })
    expect(said(run, fault).filter((what) => what.startsWith('admitted'))).toEqual(complaints)
  })
})
