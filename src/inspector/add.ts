import { labelOf } from '../dispatch/routes.js'
import { RelayError } from '../base/errors.js'
import { awaitWithin } from '../base/wait.js'
import { KEYCHAIN_LIMIT_MS } from '../tokens/tokens.js'
import { isUnsigned, SOURCE_SCHEMES } from '../senders/source-text.js'
import type { Added, AddHookRequest, AddRouteRequest, AddSourceRequest, Choices } from './api.js'
import type { InspectorParts } from './parts.js'
import { publicId } from './state.js'

// Additions and removals of a person. The sentences are for that person.

/** Reads what there is to choose from. */
export async function readChoices({ tokens, host }: InspectorParts): Promise<Choices> {
  const owners = await awaitWithin(KEYCHAIN_LIMIT_MS, tokens.owners()).catch(() => [])
  return {
    schemes: SOURCE_SCHEMES.filter((scheme) => !isUnsigned(scheme)),
    users: owners.flatMap(({ userId, origin }) => (origin === host.origin ? [userId] : [])),
  }
}

/** Adds a route to the profile. @throws RelayError as `Additions.addRoute` */
export async function addRoute({ additions }: InspectorParts, route: AddRouteRequest): Promise<Added> {
  return { text: `Added the route ${await additions.addRoute(route)}` }
}

/** Removes a route of the profile. @throws RelayError as `Additions.removeRoute`; `bad_request` for another target */
export async function removeRoute({ additions, routing }: InspectorParts, target: string): Promise<Added> {
  const route = routing.routes.find(({ id, ofProfile }) => ofProfile && publicId(id) === target)
  if (!route)
    throw new RelayError('bad_request', 'The profile stores no such route any more. Reload the page')
  await additions.removeRoute(route.id)
  return { text: `Removed the route ${labelOf(route.id)}` }
}

/** Adds a source with its secret. @throws RelayError as `Additions.addSource` */
export async function addSource({ additions }: InspectorParts, request: AddSourceRequest): Promise<Added> {
  const { name: wanted, scheme, secret } = request
  const text = wanted === undefined ? scheme : `${wanted}=${scheme}`
  const { name, address, isReplaced, doubt, verifyToken, ownKey } = await additions.addSource(text, secret)
  const sentences = [
    `Stored the ${ownKey === undefined ? 'secret' : 'public key'} of ${name}`,
    address === null
      ? "Its tunnel's channel is not there yet"
      : `The address to enter at the sender: ${address}`,
    ...(verifyToken === undefined ? [] : [`Its verify token: ${verifyToken}`]),
    ...(ownKey === undefined ? [] : [`The public half of relay's own key: ${ownKey}`]),
    ...(isReplaced ? ['The secret before it is accepted too, until another replaces this one'] : []),
    ...(doubt === undefined ? [] : [`But ${doubt}`]),
  ]
  return { text: sentences.join('. ') }
}

/** Makes a hook at the code host, or repairs it. @throws RelayError as `Additions.addHook` */
export async function addHook({ additions }: InspectorParts, hook: AddHookRequest): Promise<Added> {
  const { created, repaired, hook: made } = await additions.addHook(hook)
  const what = created ? 'Created' : repaired.length > 0 ? `Repaired (${repaired.join(', ')})` : 'Found'
  const paused = made.paused ? '. The code host has paused it, since deliveries to it failed' : ''
  return { text: `${what} the hook of ${hook.repo}, to ${made.url}${paused}` }
}
