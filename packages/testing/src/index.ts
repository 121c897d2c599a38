export {
  type AdapterTools,
  adapterContract,
  contractPath,
  type MakeServer,
  type Reply,
  type Site,
  type TestServer,
} from './adapter-contract.js'
export { type MakeStores, type ParityOptions, parity } from './parity.js'
export { type MakeStore, type StoreCapabilities, storeContract } from './store-contract.js'
