// Compiled by the type check, never run: what the types admit, and what they refuse.
import { type Decision, type Limiter, rateLimit } from '@sluice/express'
import type express from 'express'
import type { RequestHandler } from 'express'

const limit = rateLimit({ limit: 5, window: '1m' })
export const limiter: Limiter = limit.limiter
export const handler: RequestHandler = limit

export function admits(app: express.Express): void {
  app.use(limit)
  app.use('/a', [limit], limit)
  app.route('/b').all(limit).get(limit)
  app.param('id', (req, res, next) => void limit(req, res, next))
  app.get('/items/:id', limit, (req, res) => {
    const id: string = req.params.id
    const decision: Decision | undefined = req.rateLimit
    res.json({ id, remaining: decision?.remaining })
  })
  app.post<object, string, { rows: number[] }>('/rows', limit, (req, res) => {
    res.send(`${req.body.rows.length}`)
  })
}

export function refuses(app: express.Express): void {
  // @ts-expect-error `limt` is misspelt
  app.use(rateLimit({ limt: 5, window: '1m' }))
}
