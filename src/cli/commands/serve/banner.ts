import packageJson from '../../../../package.json' with { type: 'json' }
import { DEFAULTS, isChannel, type Settings } from '../../../base/settings.js'
import { labelOf } from '../../../dispatch/routes.js'
import type { Instance } from '../../../serve/instance.js'
import { pathOf } from '../../../webhook/signature.js'
import { bold, dim, type Line, t, type Text, textOf, tilde, yellow } from '../../output/text.js'
import { isUnsigned } from '../../sources.js'
import { ADDRESS_LATER } from './events.js'

type Entry = readonly [name: string, text: Line]

export interface BannerParts {
  /** Payload URL of each source's tunnel, if known. */
  readonly tunnelUrls: ReadonlyMap<string, string>
  /** Returns the short name of a target. */
  readonly nameOf: (id: string) => string
  /** Repositories whose hooks relay makes. */
  readonly hooked: readonly string[]
  /** User of this shell, if signed in. */
  readonly signedIn: string | undefined
  /** Completes a command line of relay for the profile. */
  readonly command: (line: string) => string
}

/** Columns before the texts. A longer text continues below its start. */
export const BANNER_INDENT = 15

/** Makes the lines that serve prints when it has started: addresses, places, and the next steps. */
export function banner(instance: Instance, parts: BannerParts): Text[] {
  const { url } = instance
  const { command } = parts
  const { profile, provider, providerUrl, store, folder } = instance.settings
  const inspector = t`${url}/inspect/${dim(`  key i, or ${command('inspect')}`)}`
  const entries: Entry[] = [
    ['address', url],
    ...(instance.inspector ? [['inspector', inspector] as const] : []),
    ['code host', `${provider} at ${providerUrl}`],
    ...webhook(instance, parts),
    ['secret', command('config --reveal webhookSecret')],
    ...sourceEntries(instance, parts),
    ['data', storePlace(store, tilde(folder))],
    ...targets(instance, parts),
    ...(profile === DEFAULTS.profile
      ? []
      : [['other shells', bold(`export RELAY_PROFILE=${profile}`)] as const]),
    ...signIn(instance, parts),
  ]
  return [
    t`${bold('relay')} ${packageJson.version}${dim('  profile ')}${profile}`,
    t``,
    ...entries.map(([name, text]) => t`  ${dim(name.padEnd(BANNER_INDENT - 2))}${text}`),
    t``,
  ]
}

/** Makes the object that serve prints for a program. */
export function bannerObject(instance: Instance, parts: BannerParts): Record<string, unknown> {
  const { url, settings, sandbox, core } = instance
  const { profile, provider, providerUrl, store, folder } = settings
  return {
    type: 'started',
    version: packageJson.version,
    profile,
    url,
    sandbox: sandbox?.url ?? null,
    provider,
    providerUrl,
    payloadUrl: payloadUrl(instance, parts) ?? null,
    sources: sourcesOf(instance, parts),
    data: storePlace(store, folder),
    targets: core.routing.routes.map(({ id }) => parts.nameOf(id)),
  }
}

function webhook(instance: Instance, parts: BannerParts): Entry[] {
  if (instance.settings.provider === 'sandbox') return []
  const use =
    parts.hooked.length > 0
      ? `of the webhook that relay creates in ${parts.hooked.join(', ')}`
      : 'for the webhook, with content type application/json and the secret below'
  const url = payloadUrl(instance, parts) ?? ADDRESS_LATER
  return [
    ['payload URL', bold(url)],
    ['', dim(use)],
  ]
}

/** Lists the other sources, with the addresses to enter at the senders. A new channel has none yet. */
function sourcesOf({ url, settings }: Instance, { tunnelUrls }: BannerParts) {
  const { sources = [], tunnel, publicUrl = url } = settings
  return sources.map(({ name, scheme }) => {
    const own = tunnel === undefined ? publicUrl + pathOf(name) : null
    return { name, scheme, address: tunnelUrls.get(name) ?? own }
  })
}

function sourceEntries(instance: Instance, parts: BannerParts): Entry[] {
  const sources = sourcesOf(instance, parts)
  const width = Math.max(...sources.map(({ name }) => name.length))
  return sources.map(({ name, scheme, address }, i) => {
    const note = isUnsigned(scheme) ? yellow('  unverified') : ''
    return [i === 0 ? 'sources' : '', t`${name.padEnd(width)}  ${bold(address ?? ADDRESS_LATER)}${note}`]
  })
}

/** Returns the payload URL to enter at the code host. A new channel has none yet. */
function payloadUrl({ url, settings }: Instance, { tunnelUrls }: BannerParts): string | undefined {
  const { provider, tunnel, publicUrl = url } = settings
  if (provider === 'sandbox') return undefined
  if (tunnel === undefined) return `${publicUrl}/webhook`
  return tunnelUrls.get(provider) ?? (isChannel(tunnel) ? tunnel : undefined)
}

/** Lists the targets by name, with their addresses and matches. */
function targets({ core }: Instance, { nameOf }: BannerParts): Entry[] {
  const { routes } = core.routing
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

function signIn({ settings, sandbox }: Instance, { signedIn, command }: BannerParts): Entry[] {
  if (signedIn !== undefined)
    return [['signed in', t`${signedIn}${dim(`  ${command('whoami')} shows the account`)}`]]
  const how: Entry = ['sign in', bold(command('login'))]
  if (sandbox) return [how, ['look around', sandbox.url]]
  return settings.oauthClient ? [how] : [['sign in', `off; to set it up, run ${command('setup')}`]]
}
