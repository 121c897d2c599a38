/**
 * Reads the stored states of the algorithms as the heads of their Lua files say, in the shape that the steps return.
 * @param unit the unit to name where a gcra state has no remainder, and so no unit
 */
type Decoder = (raw: Buffer, unit?: unknown) => unknown

export const decoders: Readonly<Record<string, Decoder>> = {
  fw: (raw) => {
    expectLength(raw, 12)
    return { startUs: raw.readDoubleLE(0), used: raw.readUInt32LE(8) }
  },
  sc: (raw) => {
    expectLength(raw, 16)
    return { index: raw.readDoubleLE(0), previous: raw.readUInt32LE(8), current: raw.readUInt32LE(12) }
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
  gc: (raw, unit) => {
    expectLength(raw, 8, 16, 24)
    return {
      paidUs: raw.readDoubleLE(0),
      steps: raw.length > 8 ? raw.readUInt32LE(8) : 0,
      unit: raw.length > 8 ? raw.readUInt32LE(12) : unit,
      longUs: raw.length > 16 ? raw.readDoubleLE(16) : 0,
    }
  },
}

function expectLength(raw: Buffer, ...lengths: number[]): void {
  if (!lengths.includes(raw.length))
    throw new Error(`A state of ${raw.length} bytes. Expected ${lengths.join(' or ')}`)
}

/** Whether a token bucket's unit says that charges under several units have met. */
export function isMixed(unit: number): boolean {
  return unit % 2 ** 31 > 2 ** 30
}
