import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Bar, bars, NotMeasured } from '../bench/bars.cjs'
import { barChart, chartsOf } from '../bench/charts.cjs'
import { check, passes, verdictOf } from '../bench/check.cjs'
import { readOptions } from '../bench/options.cjs'
import { pageOf } from '../bench/page.cjs'
import { figureOf, figuresOf, median, quantile, ratioOf } from '../bench/statistics.cjs'
import { mostWithin } from '../bench/windows.cjs'

const text = (file: string) => readFileSync(join(__dirname, '..', file), 'utf8')
const read = (file: string) => JSON.parse(text(file))

describe('statistics of the rounds', () => {
  test.each([
    [[3], 3],
    [[4, 1, 3], 3],
    [[4, 1, 3, 2], 2.5],
  ])('the median of %j is %d', (numbers, expected) => expect(median(numbers)).toBe(expected))

  test('a quantile lies between its neighbours in proportion', () => {
    expect(quantile([0, 10, 20, 30, 40], 0.25)).toBe(10)
    expect(quantile([0, 10], 0.99)).toBeCloseTo(9.9)
  })

  test('the noise is half of the interquartile range, as a part of the median', () => {
    expect(figureOf([80, 90, 100, 110, 120])).toEqual({ value: 100, noise: 0.1 })
    expect(figureOf([7])).toEqual({ value: 7, noise: 0 })
  })

  test('the noise of a ratio is that of both sides, as of independent ones', () => {
    const { value, noise } = ratioOf({ value: 30, noise: 0.3 }, { value: 20, noise: 0.4 })
    expect([value, noise]).toEqual([1.5, 0.5])
  })

  test('figures are summed up by name', () => {
    const runs = [1, 2, 3].map((n) => ({ cpu: n, bytes: 10 * n }))
    const { cpu, bytes } = figuresOf(runs)
    expect([cpu?.value, bytes?.value]).toEqual([2, 20])
  })
})

describe('the most in any window', () => {
  test.each([
    ['none of no requests', [], 0],
    [
      'those that lie in it as a whole',
      [
        [0, 10],
        [50, 60],
        [95, 105],
      ],
      2,
    ],
    [
      'not the one that ends with the window',
      [
        [0, 1],
        [99, 100],
      ],
      1,
    ],
    [
      'whichever window has most',
      [
        [0, 1],
        [150, 151],
        [160, 161],
        [170, 171],
      ],
      3,
    ],
  ] as [string, [number, number][], number][])('is %s', (_, spans, most) => {
    expect(mostWithin(spans, 100)).toBe(most)
  })
})

describe('a bar', () => {
  const lower = { better: 'lower', floor: 2, aim: 1 } as const
  const higher = { better: 'higher', floor: 1, aim: 2 } as const
  const equal = { better: 'equal', floor: 5, aim: 5 } as const

  test.each([
    [lower, 1, 0, 'aim'],
    [lower, 1.5, 0, 'floor'],
    [lower, 2.1, 0.05, 'within noise'],
    [lower, 2.2, 0.05, 'missed'],
    [higher, 2, 0, 'aim'],
    [higher, 1, 0, 'floor'],
    [higher, 0.96, 0.05, 'within noise'],
    [higher, 0.9, 0.05, 'missed'],
    [equal, 5, 0, 'aim'],
    [equal, 5.1, 0.5, 'missed'],
  ] as const)('%j measured as %d with noise %d: %s', (bar, value, noise, verdict) => {
    expect(verdictOf(bar, { value, noise })).toBe(verdict)
  })

  const bar = (of: Bar['of']): Bar => ({ section: 'a', title: 'a bar', ...lower, of })

  test('is checked where its section was measured, and only there', () => {
    const list = [
      bar(() => ({ value: 1, noise: 0 })),
      { ...bar(() => ({ value: 1, noise: 0 })), section: 'b' },
    ]
    expect(check({ a: {} }, list).map(({ section, verdict }) => [section, verdict])).toEqual([['a', 'aim']])
  })

  test('of a contestant that failed fails with its error', () => {
    const failing = bar(() => {
      throw new Error('gcra: no connection')
    })
    const checked = check({ a: {} }, [failing])
    expect(checked[0]).toMatchObject({ verdict: 'failed', error: 'gcra: no connection' })
    expect(passes(checked, true)).toBe(false)
  })

  test('that was left out passes a quick run alone', () => {
    const absent = bar(() => {
      throw new NotMeasured('gcra, Cluster was not measured')
    })
    const checked = check({ a: {} }, [absent])
    expect([passes(checked, true), passes(checked, false)]).toEqual([true, false])
  })

  test('that is missed fails the run', () => {
    expect(passes(check({ a: {} }, [bar(() => ({ value: 3, noise: 0 }))]), false)).toBe(false)
  })

  test('has a title of its own, and an aim that is not below its floor', () => {
    expect(new Set(bars.map(({ title }) => title)).size).toBe(bars.length)
    for (const { better, floor, aim, title } of bars) {
      const [worse, best] = better === 'lower' ? [aim, floor] : [floor, aim]
      expect([title, worse <= best]).toEqual([title, true])
    }
  })
})

/** A run in which gcra took as long as INCR, with one contestant that failed. */
const results = {
  meta: {
    command: 'npm run bench -- --write',
    commit: '`0123abc`',
    versions: 'Node.js v20.0.0, Redis 7.0.0',
    machine: '2 cores',
    noise: 'none',
    load: '0.1 before, 1.0 after',
    minutes: 12.3,
  },
  sections: {
    c: {
      memory: [
        {
          name: 'gcra',
          kind: 'sluice',
          figures: figuresOf([{ '100/bytes': 104, '100/above': 16, '10000/above': 16 }]),
        },
        { name: 'some-limiter', kind: 'peer', error: 'no connection' },
      ],
    },
  },
}

describe('the page of a run', () => {
  const page = pageOf(results)

  test('says which command and commit made it, of what versions, on which machine, with what noise', () => {
    for (const said of Object.values(results.meta)) expect(page).toContain(String(said))
  })

  test('has a row for each contestant, with the error of one that failed', () => {
    expect(page).toMatch(/^\| \*\*gcra\*\* \| 104 \(\+16\) \|/m)
    expect(page).toMatch(/^\| some-limiter \| failed: no connection \|/m)
  })

  test('has the verdict on each bar of its sections', () => {
    expect(page).toContain('| gcra: bytes in Redis above SET key 1 PX | <= 32 | <= 16 | 16 | 0 % | aim |')
    expect(page).not.toContain('decisions/s in memory')
  })
})

describe('docs/benchmarks', () => {
  test('says which command and commit made it', () => {
    expect(text('docs/benchmarks/README.md')).toMatch(
      /^`npm run bench -- [^`]*--write[^`]*` at commit `[0-9a-f]{7,}`/m,
    )
  })

  test('has the figures and bars of its run, and nothing else', () => {
    const written = read('docs/benchmarks/results.json')
    expect(text('docs/benchmarks/README.md')).toBe(pageOf(written))
    for (const [file, drawn] of Object.entries(chartsOf(written.sections))) {
      expect(text(`docs/benchmarks/${file}`)).toBe(drawn)
    }
  })
})

describe('a chart', () => {
  const drawn = barChart('Speed <of all>', [
    {
      title: 'Decisions a second',
      bars: [
        { name: 'ours', kind: 'sluice', value: 400, noise: 0 },
        { name: 'theirs', kind: 'peer', value: 100, noise: 0 },
        { name: 'broken', kind: 'peer', error: 'no connection' },
      ],
      line: { value: 200, label: 'limit' },
    },
  ])

  test('is drawn to scale from 0', () => {
    const [ours, theirs] = [
      ...drawn.matchAll(/<rect class="(?:sluice|peer)" x="290" y="[\d.]+" width="([\d.]+)"/g),
    ]
    expect(Number(ours?.[1])).toBe(570)
    expect(Number(theirs?.[1])).toBe(142.5)
    expect(drawn).toMatch(/class="line"[^>]* d="M575 /)
  })

  test('names what failed, and escapes text', () => {
    expect(drawn).toContain('failed: no connection')
    expect(drawn).toContain('<title>Speed &lt;of all></title>')
  })

  test('has colours for light and for dark pages', () => {
    expect(drawn).toContain('@media(prefers-color-scheme:dark)')
    expect(drawn).toMatch(/<rect class="ground"/)
  })
})

describe('the command line', () => {
  test.each([
    [[], { only: ['a', 'b', 'c', 'd', 'e', 'f'], quick: false, write: false, check: false, render: false }],
    [
      ['--only', 'e,a', '--quick'],
      { only: ['a', 'e'], quick: true, write: false, check: false, render: false },
    ],
    [['--only=c', '--check'], { only: ['c'], quick: false, write: false, check: true, render: false }],
  ])('%j is read', (args, expected) => expect(readOptions(args)).toEqual(expected))

  test.each([
    [['--fast'], /--fast/],
    [['--only'], /Expected some of a, b/],
    [['--only', 'x'], /--only is x/],
    [['--write', '--only', 'a'], /all sections/],
  ])('%j is refused', (args, message) => expect(() => readOptions(args)).toThrow(message))
})

test('a clone does not install what the suite compares with', () => {
  const installed = Object.keys(read('package-lock.json').packages)
  const compared = Object.keys(read('bench/package.json').dependencies)
  for (const peer of [
    'express-rate-limit',
    'rate-limiter-flexible',
    'koa-ratelimit',
    '@fastify/rate-limit',
  ]) {
    expect(compared).toContain(peer)
    expect(installed).not.toContain(`node_modules/${peer}`)
  }
})

test('the suite compares with exact versions, those of its lock', () => {
  const { dependencies } = read('bench/package.json')
  const { packages } = read('bench/package-lock.json')
  for (const [name, version] of Object.entries<string>(dependencies)) {
    const locked = packages[`node_modules/${name}`]
    const own = name.startsWith('@sluice/')
    expect([name, own ? locked.link : locked.version]).toEqual([name, own ? true : version])
  }
})
