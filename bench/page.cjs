// The page of a run, as Markdown.
const { check } = require('./check.cjs')

/** @typedef {import('./bars.cjs').Row} Row */
/** @typedef {import('./statistics.cjs').Figure} Figure */
/**
 * @typedef {object} Meta
 * @property {string} command
 * @property {string} commit
 * @property {string} versions
 * @property {string} machine
 * @property {string} noise
 * @property {string} load average at the start and at the end
 * @property {number} minutes
 */
/** @typedef {{ head: string, cell: (row: Row, rows: readonly Row[]) => string }} Column */

/** A figure in three digits, or in whole thousands. @param {number} value */
function show(value) {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en')
  return Math.abs(value) < 0.0005 ? '0' : value.toPrecision(3)
}

/** @param {Figure | undefined} figure @returns {string} */
const value = (figure) => (figure ? show(figure.value) : '')

const percent = (/** @type {number} */ share) => `${Math.round(share * 100)} %`

/** @param {string} head @param {string} what @returns {Column} the figure, with its noise if it has any */
const plain = (head, what) => ({
  head,
  cell: ({ figures }) => {
    const figure = figures?.[what]
    return value(figure) + (figure?.noise ? ` ±${percent(figure.noise)}` : '')
  },
})

/** @param {string} head @param {string} what @param {string} control @param {string} [by] its figure, default: the same */
const times = (head, what, control, by = what) => ({
  head,
  cell: (/** @type {Row} */ { figures }, /** @type {readonly Row[]} */ rows) => {
    const divisor = rows.find(({ name }) => name === control)?.figures?.[by]
    const figure = figures?.[what]
    return divisor && figure ? `${(figure.value / divisor.value).toFixed(2)}x` : ''
  },
})

/** @param {string} head @param {string} what @returns {Column} a figure that is a ratio to the control */
const ratio = (head, what) => ({
  head,
  cell: ({ figures }) => {
    const figure = figures?.[what]
    return figure ? `${figure.value.toFixed(2)}x ±${percent(figure.noise)}` : ''
  },
})

/** @param {string} head @param {string[]} all @returns {Column} several figures in one cell */
const several = (head, all) => ({
  head,
  cell: ({ figures }) => all.map((what) => value(figures?.[what])).join(' / '),
})

/** @param {string[]} head @param {string[][]} rows the first column reads from the left */
function table(head, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  const rule = head.map((_, i) => (i === 0 ? '---' : '---:'))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

/**
 * A row for each contestant; one that failed shows its error.
 * @param {readonly Row[]} rows @param {Column[]} columns
 */
function tableOf(rows, columns) {
  const failed = (/** @type {string | undefined} */ error) => [
    `failed: ${error}`,
    ...Array(columns.length - 1).fill(''),
  ]
  const body = rows.map((row) => [
    row.kind === 'sluice' ? `**${row.name}**` : row.name,
    ...(row.figures ? columns.map(({ cell }) => cell(row, rows)) : failed(row.error)),
  ])
  return table(['', ...columns.map(({ head }) => head)], body)
}

/** @param {ReturnType<typeof check>} checked */
function checkTable(checked) {
  return table(
    ['', 'floor', 'aim', 'measured', 'noise', 'verdict'],
    checked.map(({ title, better, floor, aim, figure, verdict, error }) => {
      const sign = { lower: '<= ', higher: '>= ', equal: '' }[better]
      return [
        title,
        sign + show(floor),
        sign + show(aim),
        figure ? value(figure) : (error ?? ''),
        figure ? percent(figure.noise) : '',
        verdict,
      ]
    }),
  )
}

/**
 * @param {import('./bars.cjs').Sections} sections
 * @returns {Record<string, string[]>} by letter, the parts of each section that was measured
 */
function partsOf(sections) {
  const { a, b, c, d, e, f } = sections
  const throughput = (/** @type {string} */ keys) =>
    tableOf(
      a.throughput,
      [1, 64, 512].flatMap((callers) => [
        plain(callers === 1 ? '1 caller' : `${callers} callers`, `${keys}/${callers}/perSecond`),
        times('x INCR', `${keys}/${callers}/perSecond`, 'INCR'),
        several('p50 / p99 ms', [`${keys}/${callers}/p50`, `${keys}/${callers}/p99`]),
      ]),
    )
  const ways = ['64 connections', '64 callers', '512 callers']
  return {
    ...(a && {
      a: [
        '## Decisions a second on Redis',
        'One process, one client; each caller asks again when it was answered. Ten thousand keys:',
        throughput('many'),
        '![Decisions a second on Redis](throughput.svg)',
        'One hot key:',
        throughput('hot'),
      ],
    }),
    ...(b && {
      b: [
        '## What a decision costs Redis',
        '`64 connections`: one decision in flight on each; `callers`: of one process on one client. CPU in microseconds of the whole server, its sockets included; x INCR: by that of an `INCR` from 64 connections.',
        tableOf(
          b.cost,
          ways.flatMap((way) => [
            plain(`us, ${way}`, `${way}/cpuUs`),
            times('x INCR', `${way}/cpuUs`, 'INCR', '64 connections/cpuUs'),
          ]),
        ),
        '![Redis CPU of a decision](redis-cpu.svg)',
        'Commands sent, commands executed (those within scripts included) and bytes in and out for a decision:',
        tableOf(
          b.cost,
          ways.flatMap((way) => [
            several(`commands, ${way}`, [`${way}/sent`, `${way}/executed`]),
            several('bytes', [`${way}/bytesIn`, `${way}/bytesOut`]),
          ]),
        ),
        'Clients that are denied all the time, of 64 callers:',
        tableOf(b.denials, [
          plain('decisions/s', 'perSecond'),
          plain('commands for a request', 'commandsPerRequest'),
          plain('for a key and second', 'commandsPerKeySecond'),
        ]),
        'A node that reserves, on one key of 1,000,000 a minute:',
        tableOf(b.reservation, [
          plain('decisions/s', 'perSecond'),
          plain('commands for a request', 'commandsPerRequest'),
        ]),
        ...(b.instructions
          ? [
              'Instructions of the server for a decision under callgrind, which no load changes:',
              tableOf(b.instructions, [
                plain('1 caller', '1/instructions'),
                times('x INCR', '1/instructions', 'INCR'),
                plain('64 callers', '64/instructions'),
                times('x INCR', '64/instructions', 'INCR'),
              ]),
            ]
          : ['Instructions were not counted: valgrind is not on PATH.']),
      ],
    }),
    ...(c && {
      c: [
        '## Redis memory of a client',
        '`MEMORY USAGE` of all keys of one client that used up its limit; in parentheses, above `SET key 1 PX` on the same key.',
        tableOf(
          c.memory,
          [100, 1000, 10_000].map((limit) => ({
            head: `limit ${limit.toLocaleString('en')}`,
            cell: ({ figures }) =>
              `${value(figures?.[`${limit}/bytes`])} (+${value(figures?.[`${limit}/above`])})`,
          })),
        ),
        '![Redis memory of a client](redis-memory.svg)',
      ],
    }),
    ...(d && {
      d: [
        '## In memory',
        'Decisions a second over 10,000 keys, of a limiter, and of its store alone, which is what most of the peers here are; bytes of heap for a key, the key included, and the longest single decision and the 99.99th percentile, while a million keys (of a quick run: 100,000) are taken once.',
        tableOf(d.memory, [
          plain('decisions/s', 'perSecond'),
          times('x Map', 'perSecond', 'count in a Map'),
          plain('bytes for a key', 'bytesPerKey'),
          plain('longest ms', 'longestMs'),
          plain('99.99 % ms', 'p9999Ms'),
        ]),
        '![In memory](memory-store.svg)',
      ],
    }),
    ...(e && {
      e: [
        '## Over HTTP',
        '64 keep-alive connections from as many addresses; all servers of a framework are up at once and take turns of some hundred requests, round by round, in processes started anew several times. Ratios are medians of those of a round. Requests a second and CPU of the server for one in a closed loop; milliseconds in an open loop at half of the throughput of the bare server. Under attack, 95 % of the requests come from clients that are denied. Ours send five headers; each peer those of its documentation.',
        ...Object.keys(e).flatMap((framework) => [
          `### ${framework}`,
          tableOf(e[framework], [
            plain('requests/s', 'normal/perSecond'),
            ratio('x bare', 'normal/ratio'),
            plain('CPU us', 'normal/cpuUs'),
            plain('requests a script', 'normal/perScript'),
            several('p50 / p99 ms', ['normal/p50', 'normal/p99']),
            plain('attack: requests/s', 'attack/perSecond'),
            ratio('x constant 429', 'attack/ratio'),
            plain('CPU us', 'attack/cpuUs'),
            several('p50 / p99 ms', ['attack/p50', 'attack/p99']),
          ]),
        ]),
        '![Requests a second, all admitted](http.svg)',
        '![99th percentile at half load](http-latency.svg)',
        '![Requests a second under attack](http-attack.svg)',
      ],
    }),
    ...(f && {
      f: [
        '## Accuracy',
        'Four processes on one key. At once: 500 requests of each on a limit of 1,000 a day. In any window: the most that were surely admitted within a second, by the times of request and reply, of a limit of 200 a second; a request opens a window, the rest begin shortly before it ends.',
        tableOf(f.accuracy, [
          plain('admitted at once', 'burst'),
          plain('most in any window', 'mostInWindow'),
        ]),
        '![Most admitted in any window](accuracy.svg)',
      ],
    }),
  }
}

/** @param {{ meta: Meta, sections: import('./bars.cjs').Sections }} results */
function pageOf({ meta, sections }) {
  const { command, commit, versions, machine, noise, load, minutes } = meta
  return `${[
    '# Benchmarks',
    `\`${command}\` at commit ${commit}, in ${minutes} minutes. ${versions}. ${machine}. Noise: ${noise}; load average ${load}.`,
    'Contestants take turns, each time in processes of their own. Figures are medians of the rounds, ± half of their interquartile range. Compare within a table: all of it was measured in one run, and another machine has other figures.',
    ...Object.values(partsOf(sections)).flat(),
    '## What it has to show',
    'A bar is missed where the measured figure is beyond its floor by more than the noise of the run.',
    checkTable(check(sections)),
  ].join('\n\n')}\n`
}

module.exports = { pageOf, checkTable }
