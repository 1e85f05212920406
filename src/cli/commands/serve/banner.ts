import type { Command } from '../../../base/command-line.js'
import { DEFAULTS } from '../../../base/settings.js'
import { bold, dim, type Line, t, type Text, textOf, tilde, yellow } from '../../output/text.js'
import { isUnsigned } from '../../../senders/source-text.js'
import { ADDRESS_LATER } from './items.js'
import type { Running } from './running.js'

type Entry = readonly [name: string, text: Line]

/** Columns before the texts. A longer text continues below its start. */
export const BANNER_INDENT = 15

/** Makes the lines that serve prints when it has started: addresses, places, and the next steps. */
export function banner(running: Running, command: Command): Text[] {
  const { url, profile, provider, providerUrl, version } = running
  const inspector = t`${url}/inspect/${dim(`  key i, or ${command('inspect')}`)}`
  const entries: Entry[] = [
    ['address', url],
    ...(running.hasInspector ? [['inspector', inspector] as const] : []),
    ['code host', `${provider} at ${providerUrl}`],
    ...webhook(running),
    ['secret', command('config --reveal webhookSecret')],
    ...sources(running),
    ['data', storePlace(running, tilde)],
    ...targets(running),
    ...(profile === DEFAULTS.profile
      ? []
      : [['other shells', bold(`export RELAY_PROFILE=${profile}`)] as const]),
    ...signIn(running, command),
  ]
  return [
    t`${bold('relay')} ${version}${dim('  profile ')}${profile}`,
    t``,
    ...entries.map(([name, text]) => t`  ${dim(name.padEnd(BANNER_INDENT - 2))}${text}`),
    t``,
  ]
}

/** Makes the object that serve prints for a program, among its messages. */
export function bannerObject(running: Running): Record<string, unknown> {
  const { version, profile, url, sandbox, provider, providerUrl, payloadUrl } = running
  return {
    type: 'started',
    version,
    profile,
    url,
    sandbox,
    provider,
    providerUrl,
    payloadUrl,
    sources: running.sources,
    data: storePlace(running),
    targets: running.targets.map(({ name }) => name),
  }
}

function webhook({ provider, hooked, payloadUrl }: Running): Entry[] {
  if (provider === 'sandbox') return []
  const use =
    hooked.length > 0
      ? `of the webhook that relay creates in ${hooked.join(', ')}`
      : 'for the webhook, with content type application/json and the secret below'
  return [
    ['payload URL', bold(payloadUrl ?? ADDRESS_LATER)],
    ['', dim(use)],
  ]
}

function sources({ sources: all }: Running): Entry[] {
  const width = Math.max(...all.map(({ name }) => name.length))
  return all.map(({ name, scheme, address }, i) => {
    const note = isUnsigned(scheme) ? yellow('  unverified') : ''
    return [i === 0 ? 'sources' : '', t`${name.padEnd(width)}  ${bold(address ?? ADDRESS_LATER)}${note}`]
  })
}

/** Lists the targets by name, with their addresses and matches. */
function targets({ targets: all }: Running): Entry[] {
  if (all.length === 0)
    return [['targets', t`none: add ${bold('--forward <url>')} or ${bold('--exec <command>')}`]]
  const width = Math.max(...all.map(({ name }) => textOf(name).width))
  return all.map(({ name, place, match }, i) => {
    const what = match.replace(/^\*(?=\[|$)/, 'every event')
    return [i === 0 ? 'targets' : '', t`${textOf(name).pad(width)}  ${place}  ${dim(what)}`]
  })
}

function storePlace({ store, folder }: Running, shown = (text: string): string => text): string {
  if (typeof store !== 'string') return String(store)
  if (store === 'memory') return 'memory, lost when relay stops'
  return store === 'file' ? shown(folder) : `${shown(folder)}, tokens in the keychain`
}

function signIn({ signedIn, sandbox, hasClient }: Running, command: Command): Entry[] {
  if (signedIn !== null)
    return [['signed in', t`${signedIn}${dim(`  ${command('whoami')} shows the account`)}`]]
  const how: Entry = ['sign in', bold(command('login'))]
  if (sandbox !== null) return [how, ['look around', sandbox]]
  return hasClient ? [how] : [['sign in', `off; to set it up, run ${command('setup')}`]]
}
