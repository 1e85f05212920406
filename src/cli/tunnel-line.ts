import type { TunnelStatus } from '../tunnel/state.js'
import { type Paint, printable } from './output.js'

/**
 * `12:04:11  tunnel connected: payload address https://smee.io/…`: what has changed since `before`. Undefined for what
 * nobody needs to be told of.
 */
export function tunnelLine(
  status: TunnelStatus,
  before: TunnelStatus | undefined,
  now: number,
  paint: Paint,
): string | undefined {
  const { state, url, why, attempt, retryAt, roundTrip } = status
  const start = `${paint.dim(new Date(now).toTimeString().slice(0, 8))}  tunnel`
  if (state === 'connecting') return undefined
  if (state === 'waiting') {
    if (attempt > SOON && attempt % SELDOM !== 0 && why === before?.why) return undefined
    const seconds = retryAt === null ? 0 : Math.max(1, Math.round((retryAt - now) / 1000))
    return `${start} ${paint.red('is down')}: ${printable(why ?? '')}; attempt ${attempt} in ${seconds}s`
  }
  if (before?.state !== 'connected')
    return `${start} ${paint.green('connected')}: payload address ${printable(url ?? '')}`
  if (roundTrip === 'ok')
    return `${start} ${paint.green('works')}: a message to itself came back byte for byte`
  return `${start} ${paint.yellow('does not work')}: a message to itself was lost: ${printable(roundTrip ?? '')}`
}

/** Attempts that are all told: those of the first minutes, until they come at equal intervals. */
const SOON = 8
/** After them, while the reason stays, one of so many is told, which is about every ten minutes. */
const SELDOM = 10

/** The same for a program. */
export function tunnelObject({ since, retryAt, ...status }: TunnelStatus): Record<string, unknown> {
  return {
    type: 'tunnel',
    ...status,
    since: new Date(since).toISOString(),
    retryAt: retryAt === null ? null : new Date(retryAt).toISOString(),
  }
}
