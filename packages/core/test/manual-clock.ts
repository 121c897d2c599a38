import type { ClockUs } from '../src/clock.js'

/** A clock that stands still until it is moved. */
export interface ManualClock {
  readonly nowUs: ClockUs
  /** Moves the clock by milliseconds, back too. */
  advance(milliseconds: number): void
}

/** Starts on an edge of every window up to a day. */
export function manualClock(startMs = 1_800_057_600_000): ManualClock {
  let us = startMs * 1000
  return {
    nowUs: () => us,
    advance: (milliseconds) => {
      us += milliseconds * 1000
    },
  }
}
