import ipaddr from 'ipaddr.js'

/**
 * Names the client behind an address as a key: IPv4 whole, IPv6 by its subnet, since one subscriber holds a whole
 * one. Ports, brackets and zones are dropped. Addresses that stand for one IPv4 host become that IPv4: mapped
 * (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96`), SIIT (`::ffff:0:0:0/96`) and 6to4 (`2002::/16`). Deprecated IPv4-compatible ones (`::/96`) are
 * plain IPv6. Text that is no address stays as it is.
 */
export function clientOf(text: string, ipv6Subnet: number): string {
  const address = parse(text)
  if (!address) return text
  if (address instanceof ipaddr.IPv4) return address.toString()
  const ipv4 = embeddedIPv4(address)
  if (ipv4) return ipv4.toString()
  const parts = address.parts.map((part, i) => {
    const bits = Math.min(16, Math.max(0, ipv6Subnet - 16 * i))
    return part & (0xffff << (16 - bits))
  })
  const network = new ipaddr.IPv6(parts)
  return ipv6Subnet === 128 ? network.toString() : `${network}/${ipv6Subnet}`
}

function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const trimmed = text.trim()
  const bare =
    /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(trimmed)?.[1] ?? trimmed
  const withoutZone = bare.replace(/%.*$/s, '')
  if (withoutZone.includes(':')) {
    // The parser takes ::1.2.3.4 for mapped, unlike ::102:304, which is the same address.
    const unmapped = withoutZone.replace(/^::(?=\d+\.)/, '0::')
    return ipaddr.IPv6.isValid(unmapped) ? ipaddr.IPv6.parse(unmapped) : undefined
  }
  return ipaddr.IPv4.isValidFourPartDecimal(withoutZone) ? ipaddr.IPv4.parse(withoutZone) : undefined
}

function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray()
  switch (address.range()) {
    case 'ipv4Mapped':
    case 'rfc6052':
    case 'rfc6145':
      return new ipaddr.IPv4(bytes.slice(12))
    case '6to4':
      return new ipaddr.IPv4(bytes.slice(2, 6))
    default:
      return undefined
  }
}
