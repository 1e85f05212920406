import { isLoopback } from '../../base/address.js'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { SourceSettings } from '../../base/settings.js'
import { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { isEmptySecret, decodeKey } from '../../schemes/proof.js'
import { openDatabase } from '../../store/open.js'
import { putProfileSource, removeProfileSource } from '../../webhook/profile-secret.js'
import type { Flags, Shell } from '../command.js'
import { canAsk, Prompt, readInput, textOf } from '../input.js'
import { callInstance } from '../instance-client.js'
import { UNVERIFIED } from '../output/deliveries.js'
import { bold, t, table, type Text } from '../output/text.js'
import { spokenTime } from '../output/time.js'
import {
  type Attached,
  attach,
  commandFor,
  onlyInMemory,
  openData,
  startCommand,
  stopFirst,
  storeOf,
} from '../profile.js'
import { parseSource, SOURCE_SCHEMES } from '../settings/parse.js'
import { isOfFolder } from '../settings/read.js'
import { refusedWord } from '../refused.js'
import {
  addressesOf,
  applySources,
  isUnsigned,
  readSources,
  restartHere,
  type SetSource,
  sourceNamed,
} from '../sources.js'

type Named = Pick<SourceSettings, 'name' | 'scheme'>

/** Runs `relay source add`. */
export async function runAdd(shell: Shell, flags: Flags, text: string): Promise<void> {
  const { out, json } = shell
  const attached = await attach(shell, flags, 'any')
  const { values, folder, instance } = attached
  if (values.store === 'memory') {
    if (instance) throw onlyInMemory(instance, 'its sources')
    throw new RelayError('settings', '--store memory would lose the secret as soon as this command ends')
  }
  const { name, scheme } = await readNamed(shell, attached, text)
  const secret = await readSecret(shell, attached, name)
  await using data = await openDatabase({
    kind: storeOf(values),
    folder,
    startCommand: startCommand(attached),
  })
  const earlier = await putProfileSource(data.store, { name, scheme }, new Secret(secret))
  const sources = await readSources(shell, attached, data)
  const stored = sources.find((source) => source.name === name)
  const { reloaded, problem } = await applySources(shell, attached)
  const served = reloaded?.sources.find((source) => source.name === name)
  const address = served ? served.address : addressesOf(attached)(name)
  if (json) out.object({ type: 'source', name, scheme, address, replaced: earlier !== undefined })
  else out.say(`Stored the secret of ${name}. ${addressText(address)}`)
  if (instance && served && !json) out.say(`Process ${instance.pid} takes its deliveries from now on`)
  if (!json && address !== null && isLoopback(new URL(address).hostname))
    out.say(
      `Only this machine reaches that. ${stopFirst(attached)}${commandFor(attached, 'serve --tunnel')} prints an address for the internet`,
    )
  if (earlier)
    out.say(
      `The secret before it is accepted too, until another replaces this one. ${commandFor(attached, `source remove ${name}`)} removes both`,
    )
  if (PROBABLY_OTHER.test(secret))
    out.log.warn(
      'what was stored is probably not the secret that signs deliveries: it begins like an API key, a public key or a quotation',
    )
  else if (scheme === 'standard' && decodeKey(new Secret(secret)) === undefined)
    out.log.warn('what was stored is not base64, which the secret of a Standard Webhooks sender is')
  if (stored?.secretOrigin?.kind !== 'profile')
    out.log.warn(`${stored?.secretOrigin?.text} is set, and counts instead`)
  if (problem !== undefined) out.log.warn(problem)
}

function addressText(address: string | null): string {
  return address === null
    ? "Its tunnel's channel could not be made yet: relay serve prints the address to enter at the sender"
    : `The address to enter at the sender: ${address}`
}

/** A source that is there, or a new one. @throws RelayError `usage` */
async function readNamed(shell: Shell, attached: Attached, text: string): Promise<Named> {
  await using data = await openData(attached).catch((error: unknown) => {
    // A shared store has no data of the profile before its first use.
    if (error instanceof RelayError && error.kind === 'no_match') return undefined
    throw error
  })
  const known = (await readSources(shell, attached, data)).find(({ name }) => name === text.trim())
  const named = known ?? parseNamed(text)
  const { sources: origin } = attached.origins
  // With `token` it would send a secret that is meant to sign.
  if (origin && isOfFolder(origin) && SOURCE_SCHEMES.includes(named.name) && named.scheme !== named.name)
    throw new RelayError(
      'usage',
      `${origin.text} uses the name ${named.name} for another scheme, ${named.scheme}. Give that source another name`,
    )
  if (!isUnsigned(named.scheme)) return named
  throw new RelayError(
    'usage',
    `Nothing proves deliveries of the scheme none, so there is no secret to store. ${stopFirst(attached, 'Start ')}${commandFor(attached, `serve --source ${named.name}=none`)}`,
  )
}

function parseNamed(text: string): Named {
  try {
    return parseSource(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'invalid'
    throw new RelayError('usage', `<scheme>: ${why}`, { cause })
  }
}

/** 4 KiB: longer than any sender's secret. */
const INPUT = { tooLarge: 'longer than any secret (4 KiB)', limit: 4096 }

/** From a terminal, which does not show it, or the whole of standard input. Without white space around it. */
async function readSecret(shell: Shell, attached: Attached, name: string): Promise<string> {
  if (canAsk(shell)) {
    using prompt = new Prompt(shell)
    return prompt.text(`Secret of ${name} (not shown)`, { hidden: true })
  }
  if (shell.stdin.isTTY === true)
    throw new RelayError(
      'usage',
      `A terminal would show the secret. Pipe it in, for example ${commandFor(attached, `source add ${name}`)} < secret.txt`,
    )
  const secret = textOf(await readInput(shell, '-', INPUT), 'Standard input').trim()
  if (isEmptySecret(new Secret(secret))) throw new RelayError('usage', 'Standard input has no secret')
  if (/[\p{Cc}\p{Zl}]/u.test(secret))
    throw new RelayError(
      'usage',
      'Standard input is not one secret: it has several lines or control characters',
    )
  return secret
}

/** How an API key, a public key, a secret with its version before it, and one in quotation marks begin. */
const PROBABLY_OTHER = /^(?:[srp]k_|whpk_|v1,|['"`])/

/** Runs `relay source list`. */
export async function runList(shell: Shell, flags: Flags & { readonly reveal?: string }): Promise<void> {
  const { out, json } = shell
  const attached = await attach(shell, flags)
  await using data = await openData(attached)
  const sources = await readSources(shell, attached, data)
  if (flags.reveal !== undefined) return reveal(shell, attached, sources, flags.reveal)
  if (sources.length === 0 && !json)
    return out.say(`There are no sources. ${commandFor(attached, 'source add <scheme>')} adds one`)
  const { instance } = attached
  const refusals = instance && (await callInstance(instance, 'refused', {}, shell)).refused
  const addressOf = addressesOf(attached)
  const rows = [['name', 'scheme', 'address', 'secret', 'last delivery', 'last refusal']]
  for (const source of sources) {
    const { name, scheme, secretOrigin, secrets } = source
    const address = addressOf(name)
    const delivery = data && (await lastOf(new Journal(data.sql), name))
    const refused = refusals?.findLast((each) => each.source === name)
    const secret = secretOrigin?.text ?? null
    if (json) {
      const last = delivery && { n: delivery.n, event: delivery.event, time: timeOf(delivery.receivedAt) }
      const no = refused && { id: refused.id, reason: refused.reason, time: timeOf(refused.at) }
      const more = {
        previous: secrets.previous !== undefined,
        lastDelivery: last ?? null,
        lastRefusal: no ?? null,
      }
      out.object({ type: 'source', name, scheme, address, secret, ...more })
    }
    const shown = (what: string, at: number): string => `${what} ${spokenTime(at, Date.now())}`
    rows.push([
      name,
      scheme,
      address,
      isUnsigned(scheme) ? UNVERIFIED : (secret ?? 'missing'),
      delivery ? shown(`#${delivery.n}`, delivery.receivedAt) : '-',
      refused ? shown(refusedWord(refused.id), refused.at) : '-',
    ])
  }
  if (json) return
  for (const line of out.isTerminal ? paragraphs(rows) : table(rows)) out.result(line)
  const served = new Set(instance?.sources?.map(({ name }) => name))
  if (instance && sources.some(({ name }) => !served.has(name))) out.say(restartHere(attached))
}

/** The rows of a terminal, which is too narrow for their table: two lines for each source, without headings and what there is not. */
function paragraphs([, ...sources]: readonly (readonly string[])[]): Text[] {
  const width = Math.max(...sources.map(([name = '']) => name.length))
  return sources.flatMap(
    ([name = '', scheme = '', address = '', secret = '', delivery = '-', refusal = '-']) => {
      const last = [delivery, refusal].filter((each) => each !== '-')
      const about = [
        scheme,
        secret === UNVERIFIED ? secret : `secret: ${secret}`,
        ...(last.length > 0 ? [`last ${last.join(', ')}`] : []),
      ]
      return [t`${bold(name.padEnd(width))}  ${address}`, t`${' '.repeat(width)}  ${about.join(', ')}`]
    },
  )
}

function timeOf(at: number): string {
  return new Date(at).toISOString()
}

function reveal({ out, json }: Shell, attached: Attached, sources: readonly SetSource[], name: string): void {
  const { secrets } = sourceNamed(attached, sources, name)
  const value = secrets.current.reveal()
  if (value === '') throw new RelayError('settings', `${name} has no secret`)
  if (json) out.object({ name, value })
  else out.exactly(`${value}\n`)
}

async function lastOf(journal: Journal, source: string): Promise<Summary | undefined> {
  for await (const summary of journal.select({ source, last: 1 })) return summary
  return undefined
}

/** Runs `relay source remove`. */
export async function runRemove(shell: Shell, flags: Flags, name: string): Promise<void> {
  const { out, json } = shell
  const attached = await attach(shell, flags)
  await using data = await openData(attached)
  const isRemoved = data !== undefined && (await removeProfileSource(data.store, name))
  const left = await readSources(shell, attached, data)
  const other = left.find((source) => source.name === name)
  if (!isRemoved) {
    sourceNamed(attached, left, name)
    throw new RelayError('usage', `The profile has nothing of ${name}, which is set by ${other?.origin}`)
  }
  const { instance } = attached
  const { reloaded, problem } = await applySources(shell, attached)
  if (json) out.object({ type: 'source', name, removed: true })
  else out.say(`Removed ${name} and its secret`)
  if (problem !== undefined) out.log.warn(problem)
  if (json) return
  const isServed = reloaded?.sources.some((source) => source.name === name)
  if (reloaded?.removed.includes(name)) out.say(`Process ${instance?.pid} refuses its deliveries from now on`)
  else if (other && (isServed ?? !instance)) out.log.warn(`${name} is still set by ${other.origin}`)
}
