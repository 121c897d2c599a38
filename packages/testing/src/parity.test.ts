import { MemoryStore } from '@sluice/core'
import { MapStore } from '../test/map-store.js'
import { parity } from './parity.js'

parity(
  'a store that keeps its states in a Map',
  (nowUs) => [new MemoryStore({ nowUs }), new MapStore(nowUs)],
  {
    clockGoesBack: true,
  },
)
