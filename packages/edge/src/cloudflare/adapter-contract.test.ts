import { adapterContract } from '@sluice/testing'
import { startWorkerd, type Workerd } from '../../test/workerd.js'
import { WorkerdSites } from '../../test/workerd-sites.js'

const sites = new WorkerdSites()
let workerd: Workerd

beforeAll(async () => {
  workerd = await startWorkerd('adapter-worker.js', {
    serviceBindings: { NODE: sites.answer },
  })
})
afterAll(() => workerd.stop())

adapterContract(
  'Fetch, in workerd',
  sites.server(() => workerd.url),
)
