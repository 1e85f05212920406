import { readStatus } from '../../tunnel/state.js'
import { commandFor, type Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** How it stands with the instance's tunnel, as the instance says. */
export async function checkTunnel({ instance, store, options }: Facts): Promise<Verdict> {
  if (!instance || !store) return none('none: no instance runs')
  const status = await readStatus(store, instance.pid)
  const again = commandFor(options, 'serve --tunnel')
  if (!status) return none(`none: ${again} makes one`)
  const { state, url, since, why, attempt, roundTrip } = status
  if (state === 'connecting') return none('it is connecting for the first time')
  if (state === 'waiting')
    return wrong(`down since ${new Date(since).toISOString()}: ${why}; attempt ${attempt} is next`, LOOK)
  if (roundTrip !== null && roundTrip !== 'ok')
    return wrong(`${url} is connected, but a message to itself was lost: ${roundTrip}`, again)
  return ok(
    `${url} is connected since ${new Date(since).toISOString()}${roundTrip === 'ok' ? ', and works' : ''}`,
  )
}

const LOOK =
  'relay tries by itself; see whether the network, and HTTPS_PROXY where there is a proxy, are right'
