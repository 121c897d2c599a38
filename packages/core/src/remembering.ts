/** Makes each value once and remembers it, at most so many: all are forgotten when one more comes. */
export function remembering<Key, Value extends NonNullable<unknown>>(
  most: number,
  make: (key: Key) => Value,
): (key: Key) => Value {
  const known = new Map<Key, Value>()
  return (key) => {
    let value = known.get(key)
    if (value === undefined) {
      value = make(key)
      if (known.size >= most) known.clear()
      known.set(key, value)
    }
    return value
  }
}
