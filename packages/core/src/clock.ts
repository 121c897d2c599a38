/** A clock in whole microseconds since the epoch. */
export type ClockUs = () => number

// Read once: both are getters, and cost more than the reading of the clock.
const clock = performance
const originMs = clock.timeOrigin

/** The default {@link ClockUs} of one process: monotonic, so that a step of the wall clock moves no window. */
export const processClockUs: ClockUs = () => Math.floor((originMs + clock.now()) * 1000)
