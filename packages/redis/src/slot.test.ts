import { slotOf } from './slot.js'

// As CLUSTER KEYSLOT answers.
test.each([
  ['', 0],
  ['123456789', 12_739],
  ['foo', 12_182],
  ['{foo}bar', 12_182],
  ['a{foo}{bar}', 12_182],
  ['foo{}{bar}', 8363],
  ['foo{bar', 15_278],
  ['}{foo}', 12_182],
  ['{é}', 10_180],
  ['{{a}}', 10_276],
])('the slot of %j is %i', (key, slot) => {
  expect(slotOf(key)).toBe(slot)
})
