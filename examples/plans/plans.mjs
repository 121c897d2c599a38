// Loads plans from a file and sends 7 messages as a customer of each plan.
//   node examples/plans/plans.mjs [file]     default: plans.yaml beside this program
import { Limiter } from '@sluice/core'
import { loadPlans } from '@sluice/core/node'

const file = process.argv[2] ?? new URL('plans.yaml', import.meta.url)
const plans = await loadPlans(file).catch((error) => {
  console.error(error.message)
  process.exit(1)
})

const limiter = new Limiter({ name: 'messages', plans })
for (const plan of Object.keys(plans)) {
  const decisions = []
  for (let i = 0; i < 7; i += 1) decisions.push(await limiter.consume({ key: `customer-on-${plan}`, plan }))
  const sent = decisions.filter((decision) => decision.allowed).length
  const wait = Math.ceil(decisions.at(-1).retryAfterMs / 1000)
  console.log(`${plan}: ${sent} of ${decisions.length} sent${wait > 0 ? `, the next in ${wait} s` : ''}`)
}
await limiter.close()
