import { hostSource, pathOf } from '../../base/source-names.js'
import { awaitWithin } from '../../base/wait.js'
import { KEYCHAIN_LIMIT_MS } from '../../tokens/tokens.js'
import { publicAddress } from '../addresses.js'
import { startCommand } from '../advice.js'
import { hookListCommand } from '../commands/hook.js'
import { routesCommand } from '../commands/routes.js'
import { sourceListCommand } from '../commands/source.js'
import { openProfile, type Profile } from '../profile.js'
import { openAsUser } from '../user-profile.js'
import { adviceFor, offlineCommand, secretNote } from './advice.js'
import { addError, type Call, runForAgent } from './tool.js'

/**
 * Reads the state: what runs and where, or the command that starts it; where deliveries come from and go to; which
 * secret the program verifies with; which files set what; and whether the user is signed in. Has no token and no secret.
 */
export async function readState(call: Call): Promise<object> {
  const { shell, flags, notes } = call
  await using profile = await openProfile(shell, flags, { mustExist: false })
  const { instance, name } = profile
  const { pid, url, startedAt, sandbox } = instance ?? {}
  const running = instance ? { pid, url, startedAt, sandbox, inspector: `${instance.url}/inspect` } : null
  const start = instance ? null : startCommand(profile)
  const host = hostSource(profile.values.provider)
  // A profile that does not exist yet has none.
  const none = (error: unknown): { objects: readonly object[] } => {
    addError(call, error)
    return { objects: [] }
  }
  const { objects: routes } = await runForAgent(call, routesCommand, {}).catch(none)
  const { objects: sources } = await runForAgent(call, sourceListCommand, {}).catch(none)
  const tunnels = (instance?.tunnels ?? []).map(({ source, state, url, why }) => ({
    source,
    state,
    url,
    why,
  }))
  const state = {
    profile: name,
    running,
    start,
    ...(start !== null && { startOffline: offlineCommand(profile) }),
    payloadUrl: instance || profile.values.port !== 0 ? publicAddress(profile) + pathOf(host) : null,
    secret: await secretNote(call, profile, host),
    settings: settingsByPlace(profile),
    routes,
    ...adviceFor(routes),
    sources,
    tunnels,
  }
  try {
    const { objects: hooks } = await runForAgent(call, hookListCommand, {})
    await using ofUser = await openAsUser(shell, profile, { data: 'open' })
    const { host, tokens, user } = ofUser
    const signedIn = await awaitWithin(KEYCHAIN_LIMIT_MS, tokens.isSignedIn(user, host.origin))
    return { ...state, codeHost: { url: host.url, user, signedIn, hooks } }
  } catch (error) {
    notes.add('Hooks and sign-in are not known')
    addError(call, error)
    return { ...state, codeHost: null }
  }
}

/** Names of the places of settings. */
const PLACES = {
  flag: 'flags',
  environment: 'environment',
  dotenv: '.env',
  project: 'relay.json',
  user: 'config.json',
  setup: 'setup',
  profile: 'profile',
} as const

/** Lists which settings come from where. Defaults are left out. */
function settingsByPlace({ origins }: Profile): Readonly<Record<string, readonly string[]>> {
  const places = new Map<string, string[]>()
  for (const [name, origin] of Object.entries(origins)) {
    const place = PLACES[origin.kind]
    places.set(place, [...(places.get(place) ?? []), name])
  }
  return Object.fromEntries(places)
}
