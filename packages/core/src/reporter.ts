import { type ErrorCode, show } from './errors.js'
import type { Logger, SluiceEvent } from './events.js'
import { whenRejected } from './when-rejected.js'

/** Messages may hold what clients send, of which there is no end. */
const maxLinesPerCode = 100

/** Tells a listener and a log; a mistake of theirs neither refuses a request nor ends the process. */
export class Reporter {
  readonly onEvent: ((event: SluiceEvent) => void) | undefined
  readonly logger: Logger
  readonly #logged = new Map<ErrorCode, Set<string>>()

  constructor(onEvent: ((event: SluiceEvent) => void) | undefined, logger: Logger) {
    this.onEvent = onEvent
    this.logger = logger
  }

  emit(event: SluiceEvent): void {
    if (!this.onEvent) return
    const failed = (error: unknown): void => this.log(`onEvent failed with ${show(error)}`)
    try {
      whenRejected(this.onEvent(event), failed)
    } catch (error) {
      failed(error)
    }
  }

  log(line: string): void {
    // There is nowhere left to tell of a logger that fails.
    try {
      whenRejected(this.logger.warn(`sluice: ${line}`), () => {})
    } catch {}
  }

  /** Writes a line unless it was written before; false if it was, or if its code has had its share. */
  logOnce(code: ErrorCode, line: string): boolean {
    const logged = this.#logged.get(code) ?? new Set()
    if (logged.has(line) || logged.size >= maxLinesPerCode) return false
    this.#logged.set(code, logged.add(line))
    this.log(line)
    return true
  }
}
