import type { Settings } from '../base/settings.js'
import type { Serving } from '../serve/serve.js'
import { printable, type Paint } from './output.js'
import { tilde } from './place.js'
import { packageVersion } from './version.js'

type Row = readonly [name: string, text: string]

/** What a person needs to know when the service has started: what is where, and what to try next. */
export function startUpBlock(serving: Serving, secretFrom: 'settings' | 'profile', paint: Paint): string {
  const { profile, host } = serving.settings
  const rows = (pairs: readonly Row[]): string[] =>
    pairs.map(([name, text]) => `  ${paint.dim(name.padEnd(14))}${text}`)
  return [
    `${paint.bold('relay')} ${packageVersion()}, profile ${profile}, listening on ${host}`,
    '',
    ...rows(facts(serving, secretFrom)),
    ...rows(routes(serving)),
    '',
    ...rows(nextSteps(serving)),
    '',
  ].join('\n')
}

function facts({ url, settings }: Serving, secretFrom: 'settings' | 'profile'): Row[] {
  const { provider, providerUrl, store, folder, profile } = settings
  return [
    ['address', url],
    ['code host', `${provider} at ${providerUrl}`],
    ['store', whereKept(store, tilde(folder))],
    ['secret', secretFrom === 'profile' && store === 'memory' ? MADE : revealing(profile)],
  ]
}

function routes({ relay }: Serving): Row[] {
  return relay.routing.routes.map(({ label }, i) => [i === 0 ? 'hands on to' : '', printable(label)])
}

function whereKept(store: Settings['store'], folder: string): string {
  if (store === 'memory') return 'memory, gone when this ends'
  return store === 'file' ? folder : `${folder}, tokens in the keychain`
}

const MADE = 'made for this run; RELAY_WEBHOOK_SECRET sets one you know'

function revealing(profile: string): string {
  return `relay config --reveal webhookSecret${profile === 'default' ? '' : ` --profile ${profile}`}`
}

function nextSteps({ url, settings, sandbox }: Serving): Row[] {
  const { provider, oauthClient, profile } = settings
  const publicUrl = settings.publicUrl ?? url
  const shells: Row[] = profile === 'default' ? [] : [['other shells', `export RELAY_PROFILE=${profile}`]]
  if (sandbox) return [...shells, SIGN_IN, ['look around', `open ${sandbox.url}`]]
  const webhook: Row[] = [
    ['webhook', payloadAddress(settings, publicUrl)],
    ['', 'content type application/json, and the secret above'],
  ]
  if (oauthClient) return [...webhook, ...shells, SIGN_IN]
  return [
    ...webhook,
    ...shells,
    ['sign-in', 'off: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth'],
    ['', `app that returns to ${publicUrl}/auth/${provider}/callback`],
  ]
}

/** Where the code host is to send deliveries. A channel that is to be made has no address yet. */
function payloadAddress({ tunnel }: Settings, publicUrl: string): string {
  if (tunnel === undefined) return `${publicUrl}/webhook`
  return new URL(tunnel).pathname === '/' ? 'the payload address that follows' : tunnel
}

const SIGN_IN: Row = ['sign in', 'relay login']
