import type { Forward, WaitReason } from '../journal/types.js'
import type { TargetActivity } from '../instance/protocol.js'

/** Text for a delivery that waits for its turn alone. */
const GOES_NEXT = 'next'

/**
 * Says why a delivery waits for a target. Undefined if it does not wait.
 * @param target the target's activity; undefined while no relay runs
 */
export function waitReason(
  n: number,
  { status, due = 0 }: Pick<Forward, 'status' | 'due'>,
  target: TargetActivity | undefined,
  now: number,
): WaitReason | undefined {
  if (status !== 'waiting') return undefined
  if (!target) return { text: 'no relay runs' }
  const { state, why, sending = [], heldBy } = target
  if (state === 'gone') return { text: 'not configured any more' }
  if (state === 'elsewhere') return { text: 'another relay forwards' }
  if (sending.includes(n)) return { text: 'being sent' }
  if (state === 'down') return { text: why === undefined ? 'down' : `down: ${why}` }
  if (due > now) return { text: 'tried again', nextTryAt: due }
  if (!heldBy || heldBy.n === n) return { text: GOES_NEXT }
  const behind = `behind #${heldBy.n}`
  return heldBy.at === undefined ? { text: behind } : { text: `${behind}, tried again`, nextTryAt: heldBy.at }
}

/** The reason for a person: `tried again in 12s`, `behind #3, tried again in 12s`. */
export function waitText({ text, nextTryAt }: WaitReason, now: number): string {
  return nextTryAt === undefined ? text : `${text} in ${Math.max(1, Math.round((nextTryAt - now) / 1000))}s`
}

/** Why all that waits for a target waits. Undefined if it goes out one after the other. */
export function targetReason(target: TargetActivity | undefined, now: number): string | undefined {
  // No delivery has this number, so that the reason is that of those behind the first.
  const reason = waitReason(0, { status: 'waiting' }, target, now)
  return reason && reason.text !== GOES_NEXT ? waitText(reason, now) : undefined
}
