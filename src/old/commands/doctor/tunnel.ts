import { readTunnel } from '../../../serve/tunnel.js'
import { localTime } from '../../output/time.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Whether the instance's tunnel is connected and works, as the instance reports. */
export async function checkTunnel({ instance, store, options }: CheckContext): Promise<CheckResult> {
  if (!instance || !store) return skip('no instance is running')
  const status = await readTunnel(store, instance.pid)
  const restart = commandFor(options, 'serve --tunnel')
  if (!status) return skip(`none; ${restart} opens one`)
  const { state, url, since, why, attempt, roundTrip } = status
  const payloadUrl = url === null ? 'no payload URL yet' : `payload URL ${url}`
  if (state === 'connecting') return skip(`connecting for the first time; ${payloadUrl}`)
  if (state === 'waiting')
    return fail(
      `down since ${localTime(since)}: ${why}; next is attempt ${attempt}; ${payloadUrl}`,
      CHECK_NETWORK,
    )
  if (roundTrip !== null && roundTrip !== 'ok')
    return fail(`connected to ${url}, but a test message was lost: ${roundTrip}`, restart)
  const works = roundTrip === 'ok' ? ', and works' : '; the test message of this connection is on its way'
  return ok(`connected to ${url} since ${localTime(since)}${works}`)
}

const CHECK_NETWORK = 'check the network, and HTTPS_PROXY if there is a proxy; relay retries by itself'
