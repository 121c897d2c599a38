// One HTTP server, in a process of its own. Task: { framework, name, url, refusal }. Sends its port to the parent, and
// whenever it is asked its CPU time so far.
import { once } from 'node:events'
import { frameworks } from '../contestants/http.mjs'

const { framework, name, url, refusal } = JSON.parse(process.argv[2])
const server = await frameworks[framework](name, url, refusal)
if (!server.listening) await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send(user + system)
})
process.send(server.address().port)
