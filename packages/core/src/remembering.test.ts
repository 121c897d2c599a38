import { remembering } from './remembering.js'

test('makes a value once', () => {
  const make = jest.fn((key: string) => key === 'yes')
  const isYes = remembering(2, make)
  expect(['yes', 'no', 'yes', 'no'].map(isYes)).toEqual([true, false, true, false])
  expect(make).toHaveBeenCalledTimes(2)
})

test('forgets all values when there is one too many', () => {
  const made: number[] = []
  const square = remembering(2, (key: number) => {
    made.push(key)
    return key * key
  })
  for (const key of [1, 2, 1, 3, 1, 3, 2]) expect(square(key)).toBe(key * key)
  expect(made).toEqual([1, 2, 3, 1, 2])
})

test('remembers nothing that could not be made, and forgets nothing for it', () => {
  const make = jest.fn((key: string) => JSON.parse(key) as number)
  const parse = remembering(1, make)
  parse('1')
  expect(() => parse('{')).toThrow(SyntaxError)
  expect(() => parse('{')).toThrow(SyntaxError)
  parse('1')
  expect(make).toHaveBeenCalledTimes(3)
})
