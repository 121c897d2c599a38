// A limit before authentication and another after it: 5 failed attempts a minute from an address, then its plan for
// each account.
//   node examples/anywhere/two-stages.mjs
//   for i in $(seq 6); do curl -si -H 'authorization: Bearer guess' http://127.0.0.1:3000 | head -n 1; done
import { definePlans, rateLimit } from '@sluice/express'
import express from 'express'

const accounts = {
  'Bearer demo-ann': { id: 'ann', plan: 'pro' },
  'Bearer demo-bob': { id: 'bob', plan: 'free' },
}
const plans = definePlans({ free: { limit: 3, window: '1m' }, pro: { limit: 8, window: '1m' } })

// Every attempt is charged before the credential is looked at, so that parallel guesses cannot slip through. Those that
// prove right are given back: accounts behind one address do not use up the limit of each other.
const beforeAuthentication = rateLimit({
  name: 'attempts',
  limit: 5,
  window: '1m',
  onStoreError: 'deny',
  refundWhen: (req) => req.account !== undefined,
})

function authenticate(req, res, next) {
  const { authorization } = req.headers
  if (!Object.hasOwn(accounts, authorization)) return res.status(401).json({ error: 'unknown token' })
  req.account = accounts[authorization]
  next()
}

// Counted by the account that was found, never by the token that was sent: an unverified one has no count of its own.
const afterAuthentication = rateLimit({
  name: 'account',
  plans,
  plan: (req) => req.account.plan,
  key: (req) => `account:${req.account.id}`,
})

const app = express()
app.use(beforeAuthentication, authenticate, afterAuthentication)
app.get('/', (req, res) => {
  res.json({ account: req.account.id, plan: req.rateLimit.plan })
})

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
