export { type AdapterCapabilities, adapterContract } from './adapter-contract/adapter-contract.js'
export {
  type AdapterTools,
  contractPath,
  type MakeServer,
  type Protocol,
  type Reply,
  type Site,
  type TestServer,
} from './adapter-contract/site.js'
export { type MakeStores, type ParityOptions, parity } from './parity.js'
export type { MakeStore } from './store-contract/bench.js'
export { type StoreCapabilities, storeContract } from './store-contract/store-contract.js'
