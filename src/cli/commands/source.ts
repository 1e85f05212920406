import { isLoopback } from '../../base/address.js'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { SourceSettings } from '../../base/settings.js'
import { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { isEmptySecret, decodeKey } from '../../schemes/proof.js'
import type { RefusedSummary } from '../../server/instance.js'
import { putProfileSource, removeProfileSource } from '../../webhook/profile-secret.js'
import { type CommandGroup, define, type Flags, type ResultItem, printEach, type Shell } from '../command.js'
import { canAsk, Prompt, readInput, inputText } from '../input.js'
import { callInstance } from '../instance-client.js'
import { UNVERIFIED } from '../output/deliveries.js'
import { marked, outside, own, timeField } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { bold, t, table, type Text } from '../output/text.js'
import { spokenTime } from '../output/time.js'
import { onlyInMemory, stopFirst } from '../advice.js'
import { noDataYet, openProfile, type Profile } from '../profile.js'
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

type AddInput = Flags & { readonly scheme: string }

async function* runAdd(shell: Shell, flags: AddInput) {
  const { out } = shell
  await using profile = await openProfile(shell, flags, { mustExist: false })
  const { values, instance } = profile
  if (values.store === 'memory') {
    if (instance) throw onlyInMemory(instance, 'its sources')
    throw new RelayError('settings', '--store memory would lose the secret as soon as this command ends')
  }
  const { name, scheme } = await readNamed(shell, profile, flags.scheme)
  const secret = await readSecret(shell, profile, name)
  const data = await profile.createData()
  const earlier = await putProfileSource(data.store, { name, scheme }, new Secret(secret))
  const sources = await readSources(shell, profile, data)
  const stored = sources.find((source) => source.name === name)
  const { reloaded, problem } = await applySources(shell, profile)
  const served = reloaded?.sources.find((source) => source.name === name)
  const address = served ? served.address : addressesOf(profile)(name)
  const tunnelling = `${stopFirst(profile)}${profile.command('serve --tunnel')}`
  const pid = served && instance?.pid
  yield { name, scheme, address, isReplaced: earlier !== undefined, tunnelling, pid }
  if (earlier)
    out.say(
      `The secret before it is accepted too, until another replaces this one. ${profile.command(`source remove ${name}`)} removes both`,
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

type Added = ResultItem<ReturnType<typeof runAdd>>

function addressText(address: string | null): string {
  return address === null
    ? "Its tunnel's channel could not be made yet: relay serve prints the address to enter at the sender"
    : `The address to enter at the sender: ${address}`
}

function printAdded({ name, address, tunnelling, pid }: Added, out: Output): void {
  out.say(`Stored the secret of ${name}. ${addressText(address)}`)
  if (pid !== undefined) out.say(`Process ${pid} takes its deliveries from now on`)
  if (address !== null && isLoopback(new URL(address).hostname))
    out.say(`Only this machine reaches that. ${tunnelling} prints an address for the internet`)
}

/** Finds an existing source, or parses a new one. @throws RelayError `usage` */
async function readNamed(shell: Shell, profile: Profile, text: string): Promise<Named> {
  const data = await profile.data().catch(noDataYet)
  const known = (await readSources(shell, profile, data)).find(({ name }) => name === text.trim())
  const named = known ?? parseNamed(text)
  const { sources: origin } = profile.origins
  // A scheme such as `token` would send a secret that is meant to sign.
  if (origin && isOfFolder(origin) && SOURCE_SCHEMES.includes(named.name) && named.scheme !== named.name)
    throw new RelayError(
      'usage',
      `${origin.text} uses the name ${named.name} for another scheme, ${named.scheme}. Give that source another name`,
    )
  if (!isUnsigned(named.scheme)) return named
  throw new RelayError(
    'usage',
    `Nothing proves deliveries of the scheme none, so there is no secret to store. ${stopFirst(profile, 'Start ')}${profile.command(`serve --source ${named.name}=none`)}`,
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

/** Longest secret: 4 KiB, more than any sender's. */
const INPUT = { tooLarge: 'longer than any secret (4 KiB)', limit: 4096 }

/**
 * Reads a secret from a terminal, which does not show it, or from all of standard input. Surrounding white space is
 * removed.
 */
async function readSecret(shell: Shell, profile: Profile, name: string): Promise<string> {
  if (canAsk(shell)) {
    using prompt = new Prompt(shell)
    return await prompt.text(`Secret of ${name} (not shown)`, { hidden: true })
  }
  if (shell.stdin.isTTY === true)
    throw new RelayError(
      'usage',
      `A terminal would show the secret. Pipe it in, for example ${profile.command(`source add ${name}`)} < secret.txt`,
    )
  const secret = inputText(await readInput(shell, '-', INPUT), 'Standard input').trim()
  if (isEmptySecret(new Secret(secret))) throw new RelayError('usage', 'Standard input has no secret')
  if (/[\p{Cc}\p{Zl}]/u.test(secret))
    throw new RelayError(
      'usage',
      'Standard input is not one secret: it has several lines or control characters',
    )
  return secret
}

/** Beginnings of other values: API keys, public keys, a secret with a version before it, and one in quotation marks. */
const PROBABLY_OTHER = /^(?:[srp]k_|whpk_|v1,|['"`])/

/** Description of a source. */
interface Listed extends Pick<SetSource, 'name' | 'scheme' | 'secrets'> {
  readonly address: string
  /** Place of its secret. Null for none. */
  readonly secret: string | null
  readonly delivery: Summary | undefined
  readonly refused: RefusedSummary | undefined
}

type SourceList =
  | { readonly type: 'secret'; readonly name: string; readonly value: string }
  | {
      readonly type: 'list'
      readonly list: readonly Listed[]
      readonly none: string
      readonly restart?: string
    }

async function runList(shell: Shell, flags: Flags & { readonly reveal?: string }): Promise<SourceList> {
  await using profile = await openProfile(shell, flags)
  const data = await profile.data()
  const sources = await readSources(shell, profile, data)
  if (flags.reveal !== undefined) return reveal(profile, sources, flags.reveal)
  const none = `There are no sources. ${profile.command('source add <scheme>')} adds one`
  if (sources.length === 0) return { type: 'list', list: [], none }
  const { instance } = profile
  const refusals = instance && (await callInstance(instance, 'refused', {}, shell)).refused
  const addressOf = addressesOf(profile)
  const list: Listed[] = []
  for (const { name, scheme, secretOrigin, secrets } of sources) {
    const delivery = data && (await lastOf(new Journal(data.sql), name))
    const refused = refusals?.findLast((each) => each.source === name)
    const secret = secretOrigin?.text ?? null
    list.push({ name, scheme, secrets, address: addressOf(name), secret, delivery, refused })
  }
  const served = new Set(instance?.sources?.map(({ name }) => name))
  const isStale = instance && sources.some(({ name }) => !served.has(name))
  return { type: 'list', list, none, ...(isStale && { restart: restartHere(profile) }) }
}

function printList(found: SourceList, out: Output): void {
  if (found.type === 'secret') return out.exactly(`${found.value}\n`)
  if (found.list.length === 0) return out.say(found.none)
  const shown = (what: string, at: number): string => `${what} ${spokenTime(at, Date.now())}`
  const rows = found.list.map(({ name, scheme, address, secret, delivery, refused }) => [
    name,
    scheme,
    address,
    isUnsigned(scheme) ? UNVERIFIED : (secret ?? 'missing'),
    delivery ? shown(`#${delivery.n}`, delivery.receivedAt) : '-',
    refused ? shown(refusedWord(refused.id), refused.at) : '-',
  ])
  const headings = ['name', 'scheme', 'address', 'secret', 'last delivery', 'last refusal']
  for (const line of out.isTerminal ? paragraphs(rows) : table([headings, ...rows])) out.result(line)
  if (found.restart !== undefined) out.say(found.restart)
}

function listJson(found: SourceList) {
  if (found.type === 'secret') return [marked({ name: own(found.name), value: own(found.value) })]
  return found.list.map(({ name, scheme, address, secret, secrets, delivery, refused }) => {
    const last = delivery && {
      n: delivery.n,
      event: outside(delivery.event),
      time: timeField(delivery.receivedAt),
    }
    const no = refused && { id: refused.id, reason: outside(refused.reason), time: timeField(refused.at) }
    return marked({
      type: 'source',
      name: own(name),
      scheme: own(scheme),
      address: own(address),
      secret: own(secret),
      previous: secrets.previous !== undefined,
      lastDelivery: last ?? null,
      lastRefusal: no ?? null,
    })
  })
}

/**
 * Formats sources for a terminal that is too narrow for a table: two lines each, without headings and empty columns.
 */
function paragraphs(sources: readonly (readonly string[])[]): Text[] {
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

function reveal(profile: Profile, sources: readonly SetSource[], name: string): SourceList {
  const value = sourceNamed(profile, sources, name).secrets.current.reveal()
  if (value === '') throw new RelayError('settings', `${name} has no secret`)
  return { type: 'secret', name, value }
}

async function lastOf(journal: Journal, source: string): Promise<Summary | undefined> {
  for await (const summary of journal.select({ source, last: 1 })) return summary
  return undefined
}

type RemoveInput = Flags & { readonly source: string }

async function* runRemove(shell: Shell, flags: RemoveInput) {
  const { out, json } = shell
  const { source: name } = flags
  await using profile = await openProfile(shell, flags)
  const data = await profile.data()
  const isRemoved = data !== undefined && (await removeProfileSource(data.store, name))
  const left = await readSources(shell, profile, data)
  const other = left.find((source) => source.name === name)
  if (!isRemoved) {
    sourceNamed(profile, left, name)
    throw new RelayError('usage', `The profile has nothing of ${name}, which is set by ${other?.origin}`)
  }
  const { instance } = profile
  const { reloaded, problem } = await applySources(shell, profile)
  yield { type: 'source', name, removed: true }
  if (problem !== undefined) out.log.warn(problem)
  if (json) return
  const isServed = reloaded?.sources.some((source) => source.name === name)
  if (reloaded?.removed.includes(name)) out.say(`Process ${instance?.pid} refuses its deliveries from now on`)
  else if (other && (isServed ?? !instance)) out.log.warn(`${name} is still set by ${other.origin}`)
}

const SOURCE_ENV = ['sources', 'home', 'store', 'tokenKey'] as const

export const sourceListCommand = define({
  description: `Lists the sources with scheme, address, where the secret comes from, the last delivery, and the last request that the
running relay serve refused.`,
  examples: `relay source list
relay source list --json | jq -r .address
relay source list --reveal stripe  its secret`,
  options: [['--reveal <source>', 'print only the secret of this source']],
  env: SOURCE_ENV,
  run: runList,
  print: printList,
  json: listJson,
})

const addCommand = define({
  description: `Reads the secret that the sender shows, from a prompt that does not show it or from standard input, and stores it in the
profile with the scheme. relay serve then receives from the source. A secret that it replaces is accepted too, until the next
one replaces it.`,
  examples: `relay source add stripe
relay source add billing=stripe < secret.txt
relay source add 'shop=hmac header=X-Shop-Signature prefix=sha256='`,
  args: [['<scheme>', 'scheme, name=scheme, or the name of a source that is there']],
  env: SOURCE_ENV,
  exits: [130],
  run: runAdd,
  print: printEach(printAdded),
  json: ({ name, scheme, address, isReplaced }: Added) => ({
    type: 'source',
    name,
    scheme,
    address,
    replaced: isReplaced,
  }),
})

const removeCommand = define({
  description: 'Removes what relay source add stored. The deliveries of the source stay in the journal.',
  examples: 'relay source remove stripe',
  args: [['<source>', 'its name']],
  env: SOURCE_ENV,
  run: runRemove,
  print: printEach(({ name }, out) => out.say(`Removed ${name} and its secret`)),
})

export const sourceCommand: CommandGroup = {
  description: `Manages the senders other than the code host, such as Stripe, Slack or GitLab. A source is a name and a scheme, which says
how its deliveries are signed. Its address is POST /webhook/<name>. The schemes are standard, stripe,
slack, gitlab, linear, shopify, bitbucket, sentry, pagerduty, hmac, token, none, github, gitea.`,
  examples: `relay source add stripe
relay source list
relay serve --source billing=stripe --exec 'billing/invoice.*=./on-invoice.sh'`,
  env: SOURCE_ENV,
  details: () => [
    'Secrets in variables, instead of the profile:',
    [
      ['RELAY_SOURCE_STRIPE_SECRET', 'of the source stripe; other names in capitals too, with _ for -'],
      ['RELAY_SOURCE_STRIPE_SECRET_PREVIOUS', 'the secret before it, accepted during rotation'],
    ],
  ],
  subcommands: {
    add: { summary: 'store the secret of a source', ...addCommand },
    list: { summary: 'list the sources', ...sourceListCommand },
    remove: { summary: 'remove a source and its secrets', ...removeCommand },
  },
}
