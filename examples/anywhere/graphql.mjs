// A GraphQL endpoint whose fields have a cost: 10 points a minute for a user. A field that is denied is null, with an
// error that says when to come back; the others answer.
//   node examples/anywhere/graphql.mjs
//   curl -H 'authorization: Bearer demo-ann' -d '{"query":"{ me report }"}' http://127.0.0.1:3000
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { Limiter } from '@sluice/core'
import { GraphQLError, GraphQLObjectType, GraphQLSchema, GraphQLString, graphql } from 'graphql'

const users = { 'Bearer demo-ann': 'ann', 'Bearer demo-bob': 'bob' }
const maxBytes = 10_000

const limiter = new Limiter({ name: 'graphql', limit: 10, window: '1m' })

/** A field that takes so many points each time it is resolved: under aliases, several times in one query. */
function costing(cost, field) {
  const resolve = async (source, args, context, info) => {
    const { allowed, retryAfterMs } = await limiter.consume({ key: `user:${context.user}`, cost })
    if (!allowed) {
      const extensions = { code: 'RATE_LIMITED', retryAfterMs }
      throw new GraphQLError(`Field ${info.fieldName} costs ${cost}, more than is left`, { extensions })
    }
    return field.resolve(source, args, context, info)
  }
  return { ...field, resolve }
}

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      me: costing(1, { type: GraphQLString, resolve: (_source, _args, { user }) => user }),
      report: costing(4, { type: GraphQLString, resolve: () => 'dear to make' }),
    },
  }),
})

const server = createServer(async (req, res) => {
  const { authorization } = req.headers
  if (!Object.hasOwn(users, authorization)) return res.writeHead(401).end()
  if (!(Number(req.headers['content-length']) <= maxBytes)) return res.writeHead(413).end()
  const { query: source } = (await json(req).catch(() => undefined)) ?? {}
  if (typeof source !== 'string') return res.writeHead(400).end()
  const result = await graphql({ schema, source, contextValue: { user: users[authorization] } })
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(result))
})

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
