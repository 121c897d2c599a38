/** A policy of each algorithm under which a client can use the whole limit at once. */
export const policyOf = (algorithm, limit, window = '1d') => ({
  algorithm,
  limit,
  window,
  ...(algorithm === 'leaky-bucket' && { queue: limit - 1 }),
})
