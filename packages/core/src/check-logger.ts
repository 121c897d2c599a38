import { badOption } from './errors.js'
import type { Logger } from './events.js'

/** Checks the option `logger`. */
export function checkLogger(logger: unknown): Logger {
  if (typeof (logger as Logger | null | undefined)?.warn === 'function') return logger as Logger
  throw badOption('logger', logger, 'an object with a method `warn`')
}
