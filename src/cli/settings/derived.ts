import { userInfo } from 'node:os'
import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import { type OAuthClient, parseUserId, type ReadRoutes, type StorePlace } from '../../base/settings.js'
import { isSharedAddress, SharedStore } from '../../base/shared-store.js'
import type { Values } from './parse.js'
import { isOfFolder, type LoadedSettings, type Origin } from './read.js'

// Values that parts of relay need, derived from the settings.

/** Returns the folder of all data of the profile. */
export function profileFolder({ home, profile }: Values): string {
  return path.resolve(home, profile)
}

/** Returns the store of the profile's data, with its secrets. @throws RelayError `settings` for a shared store without a key */
export function storeOf({ store, storePassword, tokenKey, tokenKeyPrevious }: Values): StorePlace {
  if (!isSharedAddress(store)) return store
  if (tokenKey === undefined)
    throw new RelayError(
      'settings',
      'RELAY_TOKEN_KEY is not set. It encrypts what a shared store holds: make it with openssl rand -base64 32, and set the same for every relay and command that uses the store',
    )
  const previous = tokenKeyPrevious === undefined ? undefined : new Secret(tokenKeyPrevious)
  const password = storePassword === undefined ? undefined : new Secret(storePassword)
  return new SharedStore(store, { password, keys: { current: new Secret(tokenKey), previous } })
}

/** Returns the routes of deliveries. */
export function routeSettings({ values, origins }: LoadedSettings): ReadRoutes {
  const { forward = [], exec = [], ignore = [], routes = [], timeout, reply } = values
  const isOfFolderAlone = (origin: Origin | undefined): boolean => origin !== undefined && isOfFolder(origin)
  return {
    forward,
    folderForward: isOfFolderAlone(origins.forward),
    exec,
    ignore,
    routes,
    folderRoutes: isOfFolderAlone(origins.routes),
    timeout,
    reply,
  }
}

/** Returns the OAuth client of the settings. Undefined if there is none. @throws RelayError `settings` for half of one */
export function clientOf({ clientId, clientSecret }: Values): OAuthClient | undefined {
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new RelayError('settings', 'Set both RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or neither of them')
  return clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined
}

/**
 * Returns the user that a command acts for. Default: the user's name on this machine.
 * @throws RelayError `usage` when that name is not a valid user id
 */
export function userOf({ user }: Pick<Values, 'user'>): string {
  if (user !== undefined) return user
  try {
    return parseUserId(userInfo().username)
  } catch (cause) {
    // A container's user can have only a number, and a Windows user a name with spaces.
    const text = 'Your name on this machine is not a valid user id. Give --user, or set RELAY_USER'
    throw new RelayError('usage', text, { cause })
  }
}

/** True if the user has chosen the user id, and not this machine or a file of the working folder. */
export function isUserNamed({ origins }: LoadedSettings): boolean {
  return origins.user !== undefined && !isOfFolder(origins.user)
}
