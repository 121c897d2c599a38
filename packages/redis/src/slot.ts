/** CRC-16/XMODEM of each byte. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** The slot of a Cluster in which a key lives: that of its first `{tag}` that is not empty, else of all of it. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = key.indexOf('}', open + 1)
  const tag = open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) ^ (table[(crc >> 8) ^ byte] as number)) & 0xffff
  return crc % 16_384
}
