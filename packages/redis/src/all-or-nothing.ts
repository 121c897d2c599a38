import { type Check, type Refund, refundsOf, type Verdict } from '@sluice/core'

/** Checks that one script decides, all or none of them. */
export type Group = readonly Check[]

/** How to ask for the verdicts of a group, and to give charges back as far as that can be done now. */
export interface Ask {
  decide(group: Group): Promise<readonly Verdict[]>
  refund(refunds: readonly Refund[]): Promise<void>
}

/**
 * Decides several groups side by side, so that all are charged or none: what one grants is given back when another
 * denies or fails, also when it answers too late to be waited for. A denial stands whatever the other groups say, and
 * the verdicts of a group that did not answer then say that it `failed`.
 * @param waitMs how long to wait for answers, and for charges to be given back
 * @param late makes the error when not all have answered by then
 * @returns the verdicts of each group
 * @throws what a group failed with, if none denied
 */
export async function allOrNothing(
  groups: readonly Group[],
  ask: Ask,
  waitMs: number,
  late: () => Error,
): Promise<readonly (readonly Verdict[])[]> {
  const answers: (readonly Verdict[] | undefined)[] = groups.map(() => undefined)
  const errors: unknown[] = []
  const answered = groups.map(async (group, i) => {
    try {
      answers[i] = await ask.decide(group)
    } catch (error) {
      errors.push(error)
    }
  })
  const wait = timer(waitMs)
  await Promise.race([Promise.all(answered), wait.over])

  const known = [...answers]
  const denial = denialAmong(groups, known)
  const whole = !denial && !known.includes(undefined)
  const keep = whole ? leastGranted(groups, known) : 0
  const givenBack = groups.map(async (group, i) => {
    await answered[i]
    const refunds = refundsOf(group, answers[i] ?? [], (granted) => granted - keep)
    if (refunds.length > 0) await ask.refund(refunds)
  })
  await Promise.race([Promise.allSettled(givenBack), wait.over])
  wait.stop()

  if (!denial && !whole) throw errors[0] ?? late()
  return groups.map((group, i) =>
    group.map((_, c) => {
      const verdict = known[i]?.[c]
      return verdict ? keeping(keep, verdict) : failed(denial as Verdict)
    }),
  )
}

function denialAmong(
  groups: readonly Group[],
  answers: readonly (readonly Verdict[] | undefined)[],
): Verdict | undefined {
  for (const [i, group] of groups.entries()) {
    const denial = answers[i]?.find((verdict, c) => !verdict.allowed && !group[c]?.policy.shadow)
    if (denial) return denial
  }
  return undefined
}

/** What all checks can keep: a lease takes the same under each policy that counts. */
function leastGranted(
  groups: readonly Group[],
  answers: readonly (readonly Verdict[] | undefined)[],
): number {
  const granted = groups.flatMap((group, i) =>
    group.map((check, c) =>
      check.policy.shadow ? Number.POSITIVE_INFINITY : (answers[i]?.[c]?.granted ?? 0),
    ),
  )
  return Math.min(...granted)
}

/** The verdict once all but `keep` units are given back; its times stay those of the charge. */
function keeping(keep: number, verdict: Verdict): Verdict {
  const { granted, remaining } = verdict
  return granted > keep ? { ...verdict, granted: keep, remaining: remaining + granted - keep } : verdict
}

function failed({ atUs }: Verdict): Verdict {
  const none = { granted: 0, remaining: 0, retryUs: 0, replenishUs: 0, resetUs: 0, delayUs: 0 }
  return { failed: true, allowed: true, ...none, atUs }
}

/** Is over once `ms` have passed and what had arrived by then was read: timers run first after a pause. */
function timer(ms: number): { readonly over: Promise<void>; stop(): void } {
  let timeout: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timeout = setTimeout(() => {
      timeout = setTimeout(resolve, 0)
    }, ms)
  })
  return { over, stop: () => clearTimeout(timeout) }
}
