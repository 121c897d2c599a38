/** A clock in whole microseconds since the epoch. */
export type ClockUs = () => number

// Read once: the getter costs more than the rest of a decision.
const originMs = performance.timeOrigin

/** The default {@link ClockUs} of one process: monotonic, so that a step of the wall clock moves no window. */
export const processClockUs: ClockUs = () => Math.floor((originMs + performance.now()) * 1000)
