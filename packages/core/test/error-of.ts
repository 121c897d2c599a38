import { SluiceError } from '../src/errors.js'

/** The SluiceError that a call throws or rejects with; fails if it does neither, or throws something else. */
export async function errorOf(act: () => unknown): Promise<SluiceError> {
  let result: unknown
  try {
    result = await act()
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error(`Expected a SluiceError, got ${JSON.stringify(result)}`)
}
