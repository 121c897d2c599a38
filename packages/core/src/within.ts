/** Settles as `promise` does, or rejects with `late()` after `timeoutMs` milliseconds. */
export function within<T>(promise: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), timeoutMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
