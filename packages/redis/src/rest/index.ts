export { RedisRestStore, type RedisRestStoreOptions } from './redis-rest-store.js'
