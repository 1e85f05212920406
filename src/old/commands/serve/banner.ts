import { DEFAULTS, NEW_TUNNEL, type Settings } from '../../../base/settings.js'
import type { Serving } from '../../../serve/serve.js'
import { tilde } from '../../output/display-path.js'
import { labelOf } from '../../../dispatch/routes.js'
import { bold, dim, type Line } from '../../output/line.js'
import { pad, textWidth } from '../../output/text-width.js'
import { packageVersion } from '../../version.js'

type Entry = readonly [name: string, text: Line]

export interface BannerParts {
  /** The payload URL of the tunnel, once there is one. */
  readonly tunnelUrl: () => string | undefined
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
export function banner(serving: Serving, parts: BannerParts): Line[] {
  const { profile } = serving.settings
  const lines = (entries: readonly Entry[]): Line[] =>
    entries.map(([name, text]) => ['  ', dim(name.padEnd(BANNER_INDENT - 2)), text])
  return [
    [bold('relay'), ` ${packageVersion()}`, dim('  profile '), profile],
    '',
    ...lines(places(serving, parts)),
    ...lines(routes(serving, parts)),
    ...lines(nextSteps(serving, parts)),
    '',
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
    version: packageVersion(),
    profile,
    url,
    sandbox: sandbox?.url ?? null,
    provider,
    providerUrl,
    payloadUrl: (provider === 'sandbox' ? undefined : payloadUrl(settings, url, tunnelUrl())) ?? null,
    data: storePlace(store, folder),
    targets: relay.routing.routes.map(({ id }) => nameOf(id)),
  }
}

function places({ url, settings, relay }: Serving, { tunnelUrl, hooked }: BannerParts): Entry[] {
  const { provider, providerUrl, store, folder, profile } = settings
  return [
    ['address', url],
    ...(relay.inspector
      ? [['inspector', [`${url}/inspect/`, dim('  key i, or relay inspect')]] as const]
      : []),
    ['code host', `${provider} at ${providerUrl}`],
    ...(provider === 'sandbox' ? [] : webhook(payloadUrl(settings, url, tunnelUrl()), hooked)),
    ['secret', revealCommand(profile)],
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
function routes({ relay }: Serving, { nameOf }: BannerParts): Entry[] {
  const { routes } = relay.routing
  if (routes.length === 0)
    return [['targets', ['none: add ', bold('--forward <url>'), ' or ', bold('--exec <command>')]]]
  const width = Math.max(...routes.map(({ id }) => textWidth(nameOf(id))))
  return routes.map(({ id, match, target }, i) => {
    const where = target.kind === 'http' ? labelOf(`*=${target.url}`) : target.command.replaceAll(/\s+/g, ' ')
    const what = match.text === '*' ? 'every event' : match.text
    return [i === 0 ? 'targets' : '', [pad(nameOf(id), width), '  ', where, '  ', dim(what)]]
  })
}

function storePlace(store: Settings['store'], folder: string): string {
  if (typeof store !== 'string') return String(store)
  if (store === 'memory') return 'memory, lost when relay stops'
  return store === 'file' ? folder : `${folder}, tokens in the keychain`
}

function revealCommand(profile: string): string {
  return `relay config --reveal webhookSecret${profile === DEFAULTS.profile ? '' : ` --profile ${profile}`}`
}

function nextSteps({ settings, sandbox }: Serving, { signedIn }: BannerParts): Entry[] {
  const { oauthClient, profile } = settings
  const shells: Entry[] =
    profile === DEFAULTS.profile ? [] : [['other shells', bold(`export RELAY_PROFILE=${profile}`)]]
  if (signedIn !== undefined)
    return [...shells, ['signed in', [signedIn, dim('  relay whoami shows the account')]]]
  if (sandbox) return [...shells, SIGN_IN, ['look around', sandbox.url]]
  if (oauthClient) return [...shells, SIGN_IN]
  const named = profile === DEFAULTS.profile ? '' : ` --profile ${profile}`
  return [...shells, ['sign in', `off; to set it up, run relay setup${named}`]]
}

/** The payload URL to enter at the code host. A new channel of the tunnel has none yet. */
function payloadUrl(
  { tunnel, publicUrl }: Settings,
  url: string,
  tunnelUrl: string | undefined,
): string | undefined {
  if (tunnel === undefined) return `${publicUrl ?? url}/webhook`
  if (tunnelUrl !== undefined) return tunnelUrl
  const isChannel = tunnel !== NEW_TUNNEL && new URL(tunnel).pathname !== '/'
  return isChannel ? tunnel : undefined
}

const SIGN_IN: Entry = ['sign in', bold('relay login')]
