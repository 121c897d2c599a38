import { groupBy } from './group-by.js'

test('items are grouped in their order, and groups in that of their first items', () => {
  const groups = groupBy([5, 2, 3, 4, 1], (number) => number % 2 === 0)
  expect([...groups]).toEqual([
    [false, [5, 3, 1]],
    [true, [2, 4]],
  ])
})

test('of nothing there are no groups', () => {
  expect(groupBy([], String).size).toBe(0)
})
