import type { Redis } from 'ioredis'

/** A stored value: the bytes of a string, or of each element of a list. */
export type Raw = Buffer | readonly Buffer[]

/** What Redis holds at a key. */
export interface Held {
  readonly raw: Raw | null
  readonly dump: Buffer | null
  readonly ttlMs: number
}

/** Reads keys of any type; of values that are neither string nor list only the dump. */
export async function look(client: Redis, keys: readonly string[]): Promise<Map<string, Held>> {
  const pipeline = client.pipeline()
  for (const key of keys) pipeline.getBuffer(key).lrangeBuffer(key, 0, -1).dumpBuffer(key).pttl(key)
  const answers = (await pipeline.exec()) ?? []
  return new Map(
    keys.map((key, i) => {
      const [text, list, dump, ttl] = answers.slice(4 * i, 4 * i + 4).map(([error, value]) => {
        if (error && !error.message.startsWith('WRONGTYPE')) throw error
        return error ? null : value
      }) as [Buffer | null, Buffer[] | null, Buffer | null, number]
      return [key, { raw: text ?? (list?.length ? list : null), dump, ttlMs: ttl }]
    }),
  )
}

/**
 * Reads a stored state of an algorithm as the head of its Lua file says, in the shape that the steps return.
 * @param unit the unit to name where a debt has no remainder, and so no unit
 */
export function decode(code: string, raw: Raw, unit?: unknown): unknown {
  if (code === 'sl') return readLog(raw as readonly Buffer[])
  return (decoders[code] as Decoder)(raw as Buffer, unit)
}

/** A log's state of the TypeScript step in the shape that `decode` gives it. */
export function entriesOf(log: {
  readonly times: Float64Array
  readonly sums: Uint32Array
  readonly first: number
  readonly count: number
  readonly before: number
}): readonly (readonly [timeUs: number, units: number])[] {
  let upto = log.before
  return Array.from({ length: log.count }, (_, i) => {
    const place = (log.first + i) % log.times.length
    const units = ((log.sums[place] as number) - upto) >>> 0
    upto = log.sums[place] as number
    return [log.times[place] as number, units]
  })
}

/** Whether a token bucket's unit says that charges under several units have met. */
export function isMixed(unit: number): boolean {
  return unit % 2 ** 31 > 2 ** 30
}

type Decoder = (raw: Buffer, unit?: unknown) => unknown

const readDebt: Decoder = (raw, unit) => {
  expectLength(raw, 8, 16, 24)
  return {
    paidUs: raw.readDoubleLE(0),
    steps: raw.length > 8 ? raw.readUInt32LE(8) : 0,
    unit: raw.length > 8 ? raw.readUInt32LE(12) : unit,
    longUs: raw.length > 16 ? raw.readDoubleLE(16) : 0,
  }
}

const decoders: Readonly<Record<string, Decoder>> = {
  fw: (raw) => {
    expectLength(raw, 12)
    return { startUs: raw.readDoubleLE(0), used: raw.readUInt32LE(8) }
  },
  sc: (raw) => {
    expectLength(raw, 16)
    return { index: raw.readDoubleLE(0), previous: raw.readUInt32LE(8), current: raw.readUInt32LE(12) }
  },
  sr: (raw) => {
    const counts = Array.from({ length: (raw.length - 12) / 4 }, (_, i) => raw.readUInt32LE(12 + 4 * i))
    const used = counts.reduce((sum, count) => sum + count, 0)
    if (used !== raw.readUInt32LE(8)) throw new Error(`A ring of ${used} units that says it had others.`)
    return [raw.readDoubleLE(0), ...counts]
  },
  tb: (raw) => {
    expectLength(raw, 24)
    const unit = raw.readUInt32LE(20)
    return {
      lastUs: raw.readDoubleLE(0),
      steps: raw.readDoubleLE(8),
      tokens: raw.readUInt32LE(16),
      // Whether units have met only says how long to keep the key, which memory does without expiry.
      unit: isMixed(unit) ? unit - 2 ** 30 : unit,
    }
  },
  gc: readDebt,
  lb: readDebt,
}

/** The elements of a log as its Lua file says: a head, then the time of each entry and the units up to it. */
export function writeLog(...elements: (readonly [timeUs: number, sum: number])[]): Buffer[] {
  return elements.map(([timeUs, sum]) => {
    const element = Buffer.alloc(10)
    element.writeUIntLE(timeUs % 2 ** 24, 0, 3)
    element.writeUInt32LE(Math.floor(timeUs / 2 ** 24), 3)
    element.writeUIntLE(sum % 2 ** 24, 7, 3)
    return element
  })
}

function readLog(raw: readonly Buffer[]): (readonly [timeUs: number, units: number])[] {
  const elements = raw.map((element) => {
    expectLength(element, 10)
    return [
      Number(Buffer.concat([element, element]).readBigUInt64LE(0) & 0xff_ffff_ffff_ffffn),
      element.readUIntLE(7, 3),
    ] as const
  })
  if (elements[0]?.[0] !== 0) throw new Error('The head of a log must be 0 and the units before it.')
  return elements
    .slice(1)
    .map(([timeUs, sum], i) => [timeUs, (sum - (elements[i] as [number, number])[1] + 2 ** 24) % 2 ** 24])
}

function expectLength(raw: Buffer, ...lengths: number[]): void {
  if (!lengths.includes(raw.length))
    throw new Error(`A state of ${raw.length} bytes. Expected ${lengths.join(' or ')}`)
}
