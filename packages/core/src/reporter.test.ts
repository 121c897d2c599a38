import { runInNewContext } from 'node:vm'
import type { SluiceEvent } from './events.js'
import { Reporter } from './reporter.js'

const event: SluiceEvent = { type: 'warning', limiter: 'l', code: 'SLUICE_LONG_QUEUE', message: 'm' }

/** What users' functions may do, and the promise that they return if they do. */
const failures: [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('oops')
    },
  ],
  ['rejects', () => Promise.reject(new Error('oops'))],
  ['rejects in another realm', () => runInNewContext("Promise.reject(new Error('oops'))")],
]

/** Calls a function, and tells whether a rejection that it returned is heard of. */
function heard(fail: () => unknown): { call: () => void; isHeard: () => boolean } {
  let then: jest.SpyInstance | undefined
  const call = (): unknown => {
    const returned = fail()
    then = jest.spyOn(returned as Promise<unknown>, 'then')
    return returned
  }
  return { call, isHeard: () => then === undefined || then.mock.calls.some((handlers) => handlers[1]) }
}

describe.each(failures)('a function of the user that %s', (_, fail) => {
  it('as the listener is a line in the log', async () => {
    const warn = jest.fn()
    const { call, isHeard } = heard(fail)
    new Reporter(call, { warn }).emit(event)
    await new Promise(setImmediate)
    expect(warn.mock.calls).toEqual([[expect.stringContaining('onEvent failed with')]])
    expect(isHeard()).toBe(true)
  })

  it('as the log is passed over', async () => {
    const { call, isHeard } = heard(fail)
    new Reporter(undefined, { warn: call }).log('line')
    await new Promise(setImmediate)
    expect(isHeard()).toBe(true)
  })
})
