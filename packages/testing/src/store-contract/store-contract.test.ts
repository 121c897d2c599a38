import { MemoryStore } from '@sluice/core'
import { MapStore } from '../../test/map-store.js'
import { storeContract } from './store-contract.js'

storeContract('a MemoryStore', (nowUs) => new MemoryStore({ nowUs }))
storeContract('a MemoryStore by the clock of the process', () => new MemoryStore(), { clock: false })
storeContract('a store that keeps its states in a Map', (nowUs) => new MapStore(nowUs))
