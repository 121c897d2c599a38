import { badOption, checkWhole, type ResolvedPolicy } from '@sluice/core'
import { type CountedPolicies, checkHeaderName, readPolicies } from './generated-from.js'

/** Who is counted: the client's address as CloudFront sees it, or the value of a request header. */
export type WafKey = 'ip' | { readonly header: string }

/** Options of {@link wafRules}. */
export type WafOptions = CountedPolicies & {
  /** Who is counted. Default `'ip'`. */
  key?: WafKey
  /** The priority of the first rule; each further rule has the next: 0 to 1,000,000. Default 0. */
  priority?: number
}

/** A rule as `aws wafv2 create-web-acl --rules` takes it. */
export interface WafRule {
  readonly Name: string
  readonly Priority: number
  readonly Statement: {
    readonly RateBasedStatement: {
      readonly Limit: number
      readonly EvaluationWindowSec: number
      readonly AggregateKeyType: 'IP' | 'CUSTOM_KEYS'
      readonly CustomKeys?: readonly {
        readonly Header: {
          readonly Name: string
          readonly TextTransformations: readonly { readonly Priority: number; readonly Type: 'NONE' }[]
        }
      }[]
    }
  }
  readonly Action:
    | { readonly Count: Record<string, never> }
    | {
        readonly Block: {
          readonly CustomResponse: {
            readonly ResponseCode: number
            readonly ResponseHeaders: readonly { readonly Name: string; readonly Value: string }[]
          }
        }
      }
  readonly VisibilityConfig: {
    readonly SampledRequestsEnabled: boolean
    readonly CloudWatchMetricsEnabled: boolean
    readonly MetricName: string
  }
}

/** Rules, and in what they differ from the policies. */
export interface WafRules {
  readonly rules: readonly WafRule[]
  readonly differences: readonly string[]
}

const windowsSec = [60, 120, 300, 600] as const
const smallestLimit = 10
const largestLimit = 2_000_000_000

/**
 * Writes AWS WAF rate-based rules for policies: a coarse first line, which denies no client that the policies would
 * admit, but for the errors of WAF's own estimate. The exact limit stays with the origin. What the rules cannot express
 * is returned and written to the log.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * const { rules, differences } = wafRules({ name: 'api', limit: 1000, window: '1m' })
 * writeFileSync('rules.json', JSON.stringify(rules))
 */
export function wafRules(options: WafOptions): WafRules {
  const { key = 'ip', priority = 0, ...counted } = options ?? {}
  const header = readKey(key)
  const first = checkWhole('priority', priority, 0, 1_000_000)
  const { name, policies, note, differences } = readPolicies('WAF rules', counted)
  const named = new Set<string>()
  const rules = policies.flatMap((policy) => {
    const ruleName = uniqueName(`${name}-${policy.name}`, named)
    return ruleOf(policy, ruleName, header, note) ?? []
  })
  note(
    'WAF estimates rates, usually within 30 s but up to several minutes late, both to deny and to admit again; it is not exact',
  )
  note('WAF counts requests, not costs, and those too which `skip` or a CORS preflight leaves uncounted')
  note(
    header === undefined
      ? 'WAF counts each IPv6 address by itself, not the /64 that one client holds'
      : `WAF counts by the header ${header} as it is sent, and a request without it not at all, where the origin falls back to the address`,
  )
  note('WAF replies without quota headers and problem details, and names the same Retry-After to all')
  note('WAF limits at most 10,000 clients of a rule at a time, those with the most requests')
  return { rules: rules.map((rule, i) => ({ ...rule, Priority: first + i })), differences }
}

function ruleOf(
  policy: ResolvedPolicy,
  name: string,
  header: string | undefined,
  note: (difference: string) => void,
): Omit<WafRule, 'Priority'> | undefined {
  const shown = `policy ${JSON.stringify(policy.name)}`
  if (policy.limit === 0) {
    note(
      `${shown} refuses everything, which no rate-based rule can: it has no rule. Use a rule that blocks by itself`,
    )
    return undefined
  }
  const windowSec = windowFor(policy)
  const most = mostAdmitted(policy, windowSec)
  if (most > largestLimit) {
    note(
      `${shown} admits more than ${largestLimit} in ${windowSec} s, above what WAF can count: it has no rule`,
    )
    return undefined
  }
  const limit = Math.max(smallestLimit, most)
  note(
    `${shown} (${policy.algorithm}, ${policy.limit} per ${policy.windowMs / 1000} s) becomes ${limit} per ${windowSec} s, ${
      limit > most ? 'the smallest limit of WAF' : 'the most that the policy admits in that time'
    }: sustained up to ${looser(policy, limit, windowSec)} times its rate`,
  )
  if (policy.shadow) note(`${shown} is a shadow, so its rule counts and denies nothing`)
  return {
    Name: name,
    Statement: {
      RateBasedStatement: {
        Limit: limit,
        EvaluationWindowSec: windowSec,
        ...(header === undefined
          ? { AggregateKeyType: 'IP' }
          : {
              AggregateKeyType: 'CUSTOM_KEYS',
              CustomKeys: [
                { Header: { Name: header, TextTransformations: [{ Priority: 0, Type: 'NONE' }] } },
              ],
            }),
      },
    },
    Action: policy.shadow
      ? { Count: {} }
      : {
          Block: {
            CustomResponse: {
              ResponseCode: 429,
              ResponseHeaders: [
                { Name: 'Retry-After', Value: String(windowSec) },
                { Name: 'Cache-Control', Value: 'no-store' },
              ],
            },
          },
        },
    VisibilityConfig: { SampledRequestsEnabled: true, CloudWatchMetricsEnabled: true, MetricName: name },
  }
}

/** The header that is counted by; undefined for the address. */
function readKey(key: WafKey): string | undefined {
  if (key === 'ip') return undefined
  if (typeof key === 'object' && key !== null) return checkHeaderName('key', key.header)
  throw badOption('key', key, "'ip' or { header: 'x-api-key' }")
}

/** A name as WAF takes it, that no other rule here has. */
function uniqueName(text: string, named: Set<string>): string {
  const plain = text.replace(/[^\w-]+/g, '-').slice(0, 120)
  let name = plain
  for (let n = 2; named.has(name); n++) name = `${plain}-${n}`
  named.add(name)
  return name
}

/** The window of WAF that is as long, else the next longer one, else the longest. */
function windowFor({ windowMs }: ResolvedPolicy): number {
  return windowsSec.find((seconds) => seconds * 1000 >= windowMs) ?? 600
}

/** The most that a policy can admit in any span of so many seconds. */
function mostAdmitted({ algorithm, limit, windowMs, burst }: ResolvedPolicy, seconds: number): number {
  const spanMs = seconds * 1000
  switch (algorithm) {
    case 'fixed-window':
    case 'sliding-window-counter':
      return limit * (Math.ceil(spanMs / windowMs) + 1)
    case 'sliding-window-log':
    case 'sliding-window-ring':
      return limit * Math.ceil(spanMs / windowMs)
    default:
      return burst + Math.floor((limit * spanMs) / windowMs)
  }
}

function looser({ limit, windowMs }: ResolvedPolicy, wafLimit: number, windowSec: number): string {
  return ((wafLimit * windowMs) / (windowSec * 1000 * limit)).toFixed(2)
}
