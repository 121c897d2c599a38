/** How long the clocks of two machines can be taken to run alike, in milliseconds. */
const longestTrustMs = 10_000

/** No reply is read as late as this, in microseconds. */
const longestDelayUs = 5_000_000

/** What is known of a server's clock: its TIME when last heard of, and the local monotonic time then. */
export class ServerClock {
  #heardUs = 0
  #atMs = performance.now()

  /**
   * Takes note of the TIME that a reply told. A reply that was read late tells less than an earlier one did, unless
   * that is so old that the clocks may have drifted; one that is behind by more than any delay was set back.
   */
  heard(serverUs: number): void {
    const atMs = performance.now()
    const behindUs = this.nowUs() - serverUs
    if (behindUs < 0 || behindUs > longestDelayUs || atMs - this.#atMs > longestTrustMs) {
      this.#heardUs = serverUs
      this.#atMs = atMs
    }
  }

  /**
   * The server's clock now, in microseconds, never ahead of it while it runs as fast as ours. Before anything was
   * heard it is long past, so that the first call comes too late, charges nothing and tells the time.
   */
  nowUs(): number {
    return Math.floor(this.#heardUs + (performance.now() - this.#atMs) * 1000)
  }

  /** Forgets all: another server may answer at the same address. */
  forget(): void {
    this.#heardUs = 0
    this.#atMs = performance.now()
  }
}
