/** Where the function finds a client's key. */
export interface KeySource {
  readonly ipv6Subnet: number
  /** The header of an API key, which is hashed. */
  readonly apiKey?: string
  readonly header?: string
}

/** The code of the function: what the runtime `cloudfront-js-2.0` knows, a part of ES2021. */
export function sourceOf(limiter: string, { ipv6Subnet, apiKey, header }: KeySource): string {
  const value = apiKey ?? header
  const own =
    apiKey === undefined
      ? `${JSON.stringify(`header:${header}:`)} + value`
      : `'key:' + crypto.createHash('sha256').update(value).digest('base64url')`
  return `import cf from 'cloudfront'
${apiKey === undefined ? '' : "import crypto from 'crypto'\n"}
// Written by cloudFrontFunction of @sluice/edge: refuses the keys that its KeyValueStore holds.
const store = cf.kvs()

async function handler(event) {
  const request = event.request
  if (isPreflight(request)) return request
  // An await stands alone, as the engine wants it, and never within a call.
  let listed, seconds
  try {
    const value = await store.get(${JSON.stringify(`${limiter}/`)} + keyOf(event))
    listed = JSON.parse(value)
    seconds = listed[0] - Math.floor(Date.now() / 1000)
  } catch (error) {
    return request // not listed
  }
  return seconds > 0 ? refusal(seconds, listed.slice(1)) : request
}

function keyOf(event) {
${
  value === undefined
    ? ''
    : `  const value = headerOf(event.request, ${JSON.stringify(value)})
  if (value) return ${own}
`
}  return 'ip:' + clientOf(event.viewer.ip)
}

function headerOf(request, name) {
  const header = request.headers[name]
  if (!header) return undefined
  return header.multiValue ? header.multiValue.map((one) => one.value).join(', ') : header.value
}

function isPreflight(request) {
  const sent = (name) => request.headers[name] !== undefined
  const never = ['authorization', 'cookie', 'content-type', 'transfer-encoding', 'x-http-method-override', 'x-http-method', 'x-method-override']
  return (
    request.method === 'OPTIONS' &&
    sent('access-control-request-method') &&
    Number(headerOf(request, 'content-length') || 0) === 0 &&
    !never.some(sent)
  )
}

// An IPv4 address whole, an IPv6 address by its subnet; one that stands for an IPv4 host as that host.
function clientOf(ip) {
  if (ip.indexOf(':') < 0) return ip
  const dotted = /(\\d+)\\.(\\d+)\\.(\\d+)\\.(\\d+)$/.exec(ip)
  if (dotted) {
    const pair = (high, low) => (Number(high) * 256 + Number(low)).toString(16)
    ip = ip.slice(0, dotted.index) + pair(dotted[1], dotted[2]) + ':' + pair(dotted[3], dotted[4])
  }
  const halves = ip.split('::').map((half) => (half ? half.split(':') : []))
  const tail = halves[1] || []
  const zeros = 8 - halves[0].length - tail.length
  const parts = halves[0].concat(Array(zeros > 0 ? zeros : 0).fill('0'), tail).map((part) => parseInt(part, 16))
  const zero = (from, to) => parts.slice(from, to).every((part) => part === 0)
  const ipv4 = (i) => [parts[i] >> 8, parts[i] & 255, parts[i + 1] >> 8, parts[i + 1] & 255].join('.')
  if (parts[0] === 0x2002) return ipv4(1)
  if (zero(0, 5) && parts[5] === 0xffff) return ipv4(6)
  if (zero(0, 4) && parts[4] === 0xffff && parts[5] === 0) return ipv4(6)
  if (parts[0] === 0x64 && parts[1] === 0xff9b && zero(2, 6)) return ipv4(6)
  const network = parts.map((part, i) => {
    const bits = Math.min(16, Math.max(0, ${ipv6Subnet} - 16 * i))
    return (part & (0xffff << (16 - bits))).toString(16)
  })
  return shorten(network.join(':'))${ipv6Subnet === 128 ? '' : ` + '/${ipv6Subnet}'`}
}

// Puts :: in place of the longest run of zeros, the first of equal ones.
function shorten(address) {
  const runs = address.match(/(^|:)(0(:|$)){2,}/g) || []
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '')
  return longest ? address.replace(longest, '::') : address
}

function refusal(seconds, policies) {
  const text = (name) => '"' + name.replace(/["\\\\]/g, '\\\\$&') + '"'
  const unit = seconds === 1 ? 'second' : 'seconds'
  const quota = policies.length > 0
  const problem = {
    type: 'https://iana.org/assignments/http-problem-types#' + (quota ? 'quota-exceeded' : 'abnormal-usage-detected'),
    title: quota ? 'Quota exceeded' : 'Blocked',
    status: 429,
    detail: 'Try again in ' + seconds + ' ' + unit + '.',
  }
  if (quota) problem['violated-policies'] = policies.map((policy) => policy[0])
  const headers = {
    'cache-control': { value: 'no-store' },
    'content-type': { value: 'application/problem+json' },
    'retry-after': { value: String(seconds) },
  }
  if (quota) {
    headers['ratelimit-policy'] = {
      value: policies.map((policy) => text(policy[0]) + ';q=' + policy[1] + ';w=' + policy[2]).join(', '),
    }
    headers['ratelimit'] = { value: policies.map((policy) => text(policy[0]) + ';r=0;t=' + seconds).join(', ') }
    headers['ratelimit-limit'] = { value: String(policies[0][1]) }
    headers['ratelimit-remaining'] = { value: '0' }
    headers['ratelimit-reset'] = { value: String(seconds) }
  }
  return {
    statusCode: 429,
    statusDescription: 'Too Many Requests',
    headers: headers,
    body: { encoding: 'text', data: JSON.stringify(problem) },
  }
}
`
}
