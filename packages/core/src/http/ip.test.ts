import { clientOf } from './ip.js'

test.each([
  ['plain', '203.0.113.5'],
  ['mapped', '::ffff:203.0.113.5'],
  ['mapped in hexadecimal', '::ffff:cb00:7105'],
  ['mapped, written out', '0:0:0:0:0:FFFF:203.0.113.5'],
  ['with a port B07', '203.0.113.5:40001'],
  ['with another port B07', '203.0.113.5:40002'],
  ['mapped, with a port', '[::ffff:203.0.113.5]:443'],
  ['in spaces', ' 203.0.113.5 '],
])('spellings of one IPv4 address are one client: %s', (_, text) => {
  expect(clientOf(text, 64)).toBe('203.0.113.5')
})

test('IPv4 clients of a dual-stack server are told apart B04', () => {
  const clients = ['::ffff:10.0.0.1', '::ffff:10.0.0.2', '10.0.0.1'].map((text) => clientOf(text, 64))
  expect(clients).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.1'])
})

test.each([
  [48, ['2001:db8:1::/48', '2001:db8:1::/48']],
  [56, ['2001:db8:1::/56', '2001:db8:1::/56']],
  [63, ['2001:db8:1:2::/63', '2001:db8:1:2::/63']],
  [64, ['2001:db8:1:2::/64', '2001:db8:1:3::/64']],
  [65, ['2001:db8:1:2:8000::/65', '2001:db8:1:3::/65']],
  [1, ['::/1', '::/1']],
  [128, ['2001:db8:1:2:ffff::9', '2001:db8:1:3::1']],
])('an IPv6 client is its subnet, here /%d B06', (subnet, expected) => {
  const clients = ['2001:db8:1:2:ffff::9', '2001:db8:1:3::1'].map((text) => clientOf(text, subnet))
  expect(clients).toEqual(expected)
})

test('ten addresses of one subnet are one client, the neighbour another B06', () => {
  const own = Array.from({ length: 10 }, (_, i) => clientOf(`2001:db8:1:2::${i}`, 64))
  expect(new Set(own).size).toBe(1)
  expect(clientOf('2001:db8:1:3::1', 64)).not.toBe(own[0])
})

test('brackets and ports are no part of an IPv6 address B07', () => {
  for (const text of ['[2001:db8::1]:555', '[2001:db8::1]', '2001:db8::1', '2001:DB8:0::1']) {
    expect(clientOf(text, 128)).toBe('2001:db8::1')
  }
})

test.each([
  ['fe80::1%eth0', 'fe80::/64'],
  ['fe80::1%eth0.100', 'fe80::/64'],
  ['[fe80::1%eth0]:80', 'fe80::/64'],
  ['::ffff:1.2.3.4%0', '1.2.3.4'],
])('the zone of %s is no part of it B10', (text, client) => {
  expect(clientOf(text, 64)).toBe(client)
})

test.each([
  ['text', 'not-an-ip'],
  ['nothing', ''],
  ['commas', ',,,'],
  ['a list', '1.1.1.1, 2.2.2.2'],
  ['a short IPv4', '127.1'],
  ['an IPv4 in hexadecimal', '0x7f.0.0.1'],
  ['a number', '2130706433'],
  ['IPv4 out of range', '1.2.3.256'],
  ['two gaps', '2001::db8::1'],
  ['only a zone', '%eth0'],
  ['open brackets', '[2001:db8::1'],
  ['8 kB of colons', ':'.repeat(8192)],
  ['8 kB of digits and dots', '1.'.repeat(4096)],
  ['8 kB of junk', '[::%\u0000\u{1F600}'.repeat(1024)],
])('text that is no address stays as it is: %s B10', (_, text) => {
  expect(clientOf(text, 64)).toBe(text)
})

test.each([
  ['NAT64 clients are their IPv4', '64:ff9b::8.8.8.8', '8.8.8.8'],
  ['and told apart', '64:ff9b::9.9.9.9', '9.9.9.9'],
  ['6to4 is the IPv4 that holds it', '2002:102:304::1', '1.2.3.4'],
  ['in all its subnets', '2002:102:304:ffff::1', '1.2.3.4'],
  ['IPv4-compatible addresses, long deprecated, are plain IPv6', '::8.8.8.8', '::/64'],
  ['in either spelling', '::808:808', '::/64'],
])('transition ranges: %s B13', (_, text, client) => {
  expect(clientOf(text, 64)).toBe(client)
})
