// One definition of each limit: for the Worker, and for what `config.mjs` writes of it.
/** What anyone may send. */
export const api = { name: 'api', algorithm: 'gcra', limit: 60, window: '1m', burst: 10 }
/** A small limit that must hold: counted one by one. */
export const login = { name: 'login', algorithm: 'sliding-window-log', limit: 3, window: '15m' }
