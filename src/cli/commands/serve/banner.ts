import packageJson from '../../../../package.json' with { type: 'json' }
import { DEFAULTS, type Settings } from '../../../base/settings.js'
import { labelOf } from '../../../dispatch/routes.js'
import type { Serving } from '../../../serve/serve.js'
import { bold, dim, type Line, t, type Text, textOf, tilde } from '../../output/text.js'
import { isChannel } from './events.js'

type Entry = readonly [name: string, text: Line]

export interface BannerParts {
  /** The payload URL of the tunnel, once there is one. */
  readonly tunnelUrl: string | undefined
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
  /** The repositories whose hooks relay makes. */
  readonly hooked: readonly string[]
  /** The user of this shell, if signed in. */
  readonly signedIn: string | undefined
}

/** Columns before the texts; a longer text continues below its start. */
export const BANNER_INDENT = 15

/** The lines that serve prints when it has started: addresses, places, and the next steps. */
export function banner(serving: Serving, parts: BannerParts): Text[] {
  const { profile } = serving.settings
  const entries = [...places(serving, parts), ...targets(serving, parts), ...nextSteps(serving, parts)]
  return [
    t`${bold('relay')} ${packageJson.version}${dim('  profile ')}${profile}`,
    t``,
    ...entries.map(([name, text]) => t`  ${dim(name.padEnd(BANNER_INDENT - 2))}${text}`),
    t``,
  ]
}

/** The same for a program. */
export function bannerObject(
  { url, settings, sandbox, relay }: Serving,
  { tunnelUrl, nameOf }: BannerParts,
): Record<string, unknown> {
  const { profile, provider, providerUrl, store, folder } = settings
  return {
    type: 'started',
    version: packageJson.version,
    profile,
    url,
    sandbox: sandbox?.url ?? null,
    provider,
    providerUrl,
    payloadUrl: (provider === 'sandbox' ? undefined : payloadUrl(settings, url, tunnelUrl)) ?? null,
    data: storePlace(store, folder),
    targets: relay.routing.routes.map(({ id }) => nameOf(id)),
  }
}

function places({ url, settings, relay }: Serving, { tunnelUrl, hooked }: BannerParts): Entry[] {
  const { provider, providerUrl, store, folder, profile } = settings
  return [
    ['address', url],
    ...(relay.inspector
      ? [['inspector', t`${url}/inspect/${dim('  key i, or relay inspect')}`] as const]
      : []),
    ['code host', `${provider} at ${providerUrl}`],
    ...(provider === 'sandbox' ? [] : webhook(payloadUrl(settings, url, tunnelUrl), hooked)),
    ['secret', `relay config --reveal webhookSecret${profileFlag(profile)}`],
    ['data', storePlace(store, tilde(folder))],
  ]
}

function webhook(url = 'printed below once the tunnel is connected', hooked: readonly string[]): Entry[] {
  const use =
    hooked.length > 0
      ? `of the webhook that relay creates in ${hooked.join(', ')}`
      : 'for the webhook, with content type application/json and the secret below'
  return [
    ['payload URL', bold(url)],
    ['', dim(use)],
  ]
}

/** The targets by name: where each leads, and what it gets. */
function targets({ relay }: Serving, { nameOf }: BannerParts): Entry[] {
  const { routes } = relay.routing
  if (routes.length === 0)
    return [['targets', t`none: add ${bold('--forward <url>')} or ${bold('--exec <command>')}`]]
  const width = Math.max(...routes.map(({ id }) => textOf(nameOf(id)).width))
  return routes.map(({ id, match, target }, i) => {
    const where = target.kind === 'http' ? labelOf(`*=${target.url}`) : target.command.replaceAll(/\s+/g, ' ')
    const what = match.text === '*' ? 'every event' : match.text
    return [i === 0 ? 'targets' : '', t`${textOf(nameOf(id)).pad(width)}  ${where}  ${dim(what)}`]
  })
}

function storePlace(store: Settings['store'], folder: string): string {
  if (typeof store !== 'string') return String(store)
  if (store === 'memory') return 'memory, lost when relay stops'
  return store === 'file' ? folder : `${folder}, tokens in the keychain`
}

function nextSteps({ settings, sandbox }: Serving, { signedIn }: BannerParts): Entry[] {
  const { oauthClient, profile } = settings
  const shells: Entry[] =
    profile === DEFAULTS.profile ? [] : [['other shells', bold(`export RELAY_PROFILE=${profile}`)]]
  if (signedIn !== undefined)
    return [...shells, ['signed in', t`${signedIn}${dim('  relay whoami shows the account')}`]]
  const signIn: Entry = ['sign in', bold('relay login')]
  if (sandbox) return [...shells, signIn, ['look around', sandbox.url]]
  if (oauthClient) return [...shells, signIn]
  return [...shells, ['sign in', `off; to set it up, run relay setup${profileFlag(profile)}`]]
}

function profileFlag(profile: string): string {
  return profile === DEFAULTS.profile ? '' : ` --profile ${profile}`
}

/** The payload URL to enter at the code host. A new channel of the tunnel has none yet. */
function payloadUrl(
  { tunnel, publicUrl }: Settings,
  url: string,
  tunnelUrl: string | undefined,
): string | undefined {
  if (tunnel === undefined) return `${publicUrl ?? url}/webhook`
  return tunnelUrl ?? (isChannel(tunnel) ? tunnel : undefined)
}
