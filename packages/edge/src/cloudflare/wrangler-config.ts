import { badOption, checkWhole, type Policy } from '@sluice/core'
import { coarsen } from './coarse.js'

/**
 * Writes what `wrangler.jsonc` needs for policies: a rate-limit binding for each, with what it cannot express of the
 * policy as comments, and the Durable Objects of a {@link DurableObjectStore}. To be printed and copied.
 * @param policies each with a `name`, of which the binding's is made: `LOGIN` of `login`
 * @param options `namespaceId`: the number of the first binding, unique in your account, 1 to 10^9. Default 1001.
 * @throws SluiceError with the option, its value and what is expected
 */
export function wranglerConfig(
  policies: readonly Policy[],
  { namespaceId = 1001 }: { namespaceId?: number } = {},
): string {
  if (!Array.isArray(policies)) throw badOption('policies', policies, 'an array of policies')
  checkWhole('namespaceId', namespaceId, 1, 1e9)
  const names = new Set<string>()
  const bindings = policies.map((source, i) => {
    const { policy, limit, period, differences } = coarsen(source)
    const name = bindingName(policy.name)
    if (names.has(name)) throw badOption('name', policy.name, `a name that does not give a second ${name}`)
    names.add(name)
    const binding = { name, namespace_id: String(namespaceId + i), simple: { limit, period } }
    return [...differences.map((clause) => `    // ${clause}`), `    ${JSON.stringify(binding)},`].join('\n')
  })
  return `{
  "ratelimits": [
${bindings.join('\n')}
  ],
  "durable_objects": {
    "bindings": [{ "name": "RATE_LIMITS", "class_name": "RateLimitObject" }],
  },
  "migrations": [{ "tag": "v1", "new_sqlite_classes": ["RateLimitObject"] }],
}
`
}

function bindingName(policy: string): string {
  const name = policy.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  return /^[A-Z]/.test(name) ? name : `LIMIT_${name}`
}
