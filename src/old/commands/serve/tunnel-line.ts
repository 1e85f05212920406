import type { TunnelStatus } from '../../../tunnel/tunnel.js'
import { dim, green, type Line, red, yellow } from '../../output/line.js'
import { timeOfDay } from '../../output/time.js'

/**
 * `12:04:11  tunnel connected: payload URL https://smee.io/…`: the change since `before`. Undefined for one that is not worth a
 * line.
 */
export function tunnelLine(
  status: TunnelStatus,
  before: TunnelStatus | undefined,
  now: number,
): Line | undefined {
  const text = tunnelText(status, before, now)
  return text && [dim(timeOfDay(now)), '  ', text]
}

/** The same without the time. */
export function tunnelText(
  status: TunnelStatus,
  before: TunnelStatus | undefined,
  now: number,
): Line | undefined {
  const { state, url, why, attempt, retryAt, roundTrip } = status
  const start = ['tunnel ']
  if (state === 'connecting') return undefined
  if (state === 'waiting') {
    if (attempt > FREQUENT && attempt % INTERVAL !== 0 && why === before?.why) return undefined
    const ms = (retryAt ?? now) - now
    const next = ms > 0 ? `attempt ${attempt} in ${Math.max(1, Math.round(ms / 1000))}s` : 'reconnecting'
    // A later line need not repeat it.
    const isNew = url !== null && (before?.url !== url || before.state === 'connecting')
    return [...start, red('is down'), `: ${why ?? ''}; ${next}`, ...(isNew ? [`; payload URL ${url}`] : [])]
  }
  if (before?.state !== 'connected') return [...start, green('connected'), `: payload URL ${url ?? ''}`]
  if (roundTrip === 'ok') return [...start, green('works'), ': a test message came back byte for byte']
  return [...start, yellow('does not work'), `: a test message was lost: ${roundTrip ?? ''}`]
}

/** The first attempts, which are all printed. Later ones follow at equal intervals. */
const FREQUENT = 8
/** Then one of this many is printed, about every ten minutes, unless the reason changes. */
const INTERVAL = 10

/** The same for a program. */
export function tunnelObject({ since, retryAt, ...status }: TunnelStatus): Record<string, unknown> {
  return {
    type: 'tunnel',
    ...status,
    since: new Date(since).toISOString(),
    retryAt: retryAt === null ? null : new Date(retryAt).toISOString(),
  }
}
