/**
 * Settles as `promise` does, or rejects with `late()` once `timeoutMs` milliseconds have passed and what had arrived by
 * then was read: after a pause of the event loop timers run first, and an answer may be waiting in its socket.
 */
export function within<T>(promise: T | PromiseLike<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer = setTimeout(() => {
      timer = setTimeout(() => reject(late()), 0)
    }, timeoutMs)
    Promise.resolve(promise).then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
