import { DEFAULTS, NEW_TUNNEL, type Settings } from '../../../base/settings.js'
import type { Serving } from '../../../serve/serve.js'
import { tilde } from '../../output/display-path.js'
import { bold, dim, type Line } from '../../output/line.js'
import { packageVersion } from '../../version.js'

type Entry = readonly [name: string, text: string]

/** The lines that serve prints when it has started: addresses, places, and the next steps. */
export function banner(serving: Serving, secretFrom: 'settings' | 'profile'): Line[] {
  const { profile, host } = serving.settings
  const lines = (entries: readonly Entry[]): Line[] =>
    entries.map(([name, text]) => ['  ', dim(name.padEnd(14)), text])
  return [
    [bold('relay'), ` ${packageVersion()}, profile ${profile}, listening on ${host}`],
    '',
    ...lines(places(serving, secretFrom)),
    ...lines(routes(serving)),
    '',
    ...lines(nextSteps(serving)),
    '',
  ]
}

function places({ url, settings }: Serving, secretFrom: 'settings' | 'profile'): Entry[] {
  const { provider, providerUrl, store, folder, profile } = settings
  return [
    ['address', url],
    ['code host', `${provider} at ${providerUrl}`],
    ['store', storePlace(store, tilde(folder))],
    ['secret', secretFrom === 'profile' && store === 'memory' ? MEMORY_SECRET : revealCommand(profile)],
  ]
}

function routes({ relay }: Serving): Entry[] {
  return relay.routing.routes.map(({ label }, i) => [i === 0 ? 'forwards to' : '', label])
}

function storePlace(store: Settings['store'], folder: string): string {
  if (store === 'memory') return 'memory, lost when relay stops'
  return store === 'file' ? folder : `${folder}, tokens in the keychain`
}

const MEMORY_SECRET = 'made for this run; set your own with RELAY_WEBHOOK_SECRET'

function revealCommand(profile: string): string {
  return `relay config --reveal webhookSecret${profile === DEFAULTS.profile ? '' : ` --profile ${profile}`}`
}

function nextSteps({ url, settings, sandbox }: Serving): Entry[] {
  const { provider, oauthClient, profile } = settings
  const publicUrl = settings.publicUrl ?? url
  const shells: Entry[] =
    profile === DEFAULTS.profile ? [] : [['other shells', `export RELAY_PROFILE=${profile}`]]
  if (sandbox) return [...shells, SIGN_IN, ['look around', `open ${sandbox.url}`]]
  const webhook: Entry[] = [
    ['webhook', payloadUrl(settings, publicUrl)],
    ['', 'with content type application/json and the secret above'],
  ]
  if (oauthClient) return [...webhook, ...shells, SIGN_IN]
  return [
    ...webhook,
    ...shells,
    ['sign-in', 'off: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth'],
    ['', `app with the callback ${publicUrl}/auth/${provider}/callback`],
  ]
}

/** The payload URL to enter at the code host. A new channel of the tunnel has none yet. */
function payloadUrl({ tunnel }: Settings, publicUrl: string): string {
  if (tunnel === undefined) return `${publicUrl}/webhook`
  const isChannel = tunnel !== NEW_TUNNEL && new URL(tunnel).pathname !== '/'
  return isChannel ? tunnel : 'the payload URL printed below'
}

const SIGN_IN: Entry = ['sign in', 'relay login']
