/** A clock in whole microseconds since the epoch. */
export type ClockUs = () => number

/** The default {@link ClockUs} of one process: monotonic, so that a step of the wall clock moves no window. */
export const processClockUs: ClockUs = () => Math.floor((performance.timeOrigin + performance.now()) * 1000)
