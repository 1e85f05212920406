import { isLoopback } from '../../base/address.js'
import { anywhere } from '../../base/command-line.js'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { NamedScheme } from '../../base/settings.js'
import { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { isUnsigned } from '../../senders/source-text.js'
import {
  KNOWN_SENDERS,
  knownSender,
  type KnownSender,
  SCHEME_NAMES,
  searchSenders,
} from '../../senders/senders.js'
import type { RefusedSummary } from '../../server/instance.js'
import {
  chooseSource,
  MAX_SECRET,
  readSourceSecret,
  storeSource,
  verifyTokenOf,
} from '../../webhook/add-source.js'
import { removeProfileSource } from '../../webhook/profile-secret.js'
import { define, type CommandGroup, type Flags, type ResultItem, printEach, type Shell } from '../command.js'
import { canAsk, Prompt, readInput, inputText } from '../input.js'
import { senderOf } from '../../senders/senders.js'
import { wakeups } from '../follow.js'
import { callInstance } from '../instance-client.js'
import { UNVERIFIED } from '../output/deliveries.js'
import { marked, outside, own, timeField } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { bold, t, table, type Text } from '../output/text.js'
import { spokenTime } from '../output/time.js'
import { startCommand, stopFirst } from '../advice.js'
import { noDataYet, openProfile, type Profile } from '../profile.js'
import { refusedWord } from '../refused.js'
import { addressesOf, readSources, restartHere, type SetSource, sourceNamed } from '../sources.js'
import { applyStored, refuseMemory } from '../stored.js'

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
profile with the scheme. relay serve then receives from the source. The secret that it replaces stays valid until you
replace the new one. Without a scheme, it lists the senders with a scheme, and a terminal asks for one: type a part of its name.`,
  examples: `relay source add
relay source add stripe
relay source add billing=stripe < secret.txt
relay source add 'shop=hmac header=X-Shop-Signature prefix=sha256='
relay source add 'till=hmac header=X-Till-Signature encoding=base64 signed={url}{body}'`,
  details: () => [
    'What hmac and token take, as key=value (docs/senders.md has all of it):',
    [
      ['header=, at=', "the signature's header; or a place in query or body: at=?token, at=$.passcode"],
      ['prefix=, separator=', 'what stands before it, and between several: sha256=, and , or ; or space'],
      ['algorithm=, encoding=', 'sha256, sha1, sha384, sha512, md5; hex, HEX, base64, base64url'],
      ['key=', 'what the secret is: text, base64, hex'],
      ['ed25519, ecdsa, rsa', "schemes as hmac, for a sender's public key; key= says how it is written"],
      [
        'signed=, fields=, url=',
        'a text of {timestamp}, {id}, {body}, {body-sha256}, {method}, {url}, {path}, {query}, {fields}',
      ],
      ['time=, unit=, tolerance=', 'the signed time: its place, s or ms or rfc3339, how old it may be'],
      ['event=, id=', 'their places: X-Topic, $.order.id; id=digest for equal bodies'],
      ['on-duplicate=', 'of any scheme: if-failed, always, never'],
      ['handshake=', 'answers what this sender asks: meta, zoom, asana, dropbox and others'],
    ],
  ],
  args: [['[scheme]', 'scheme, name=scheme, or the name of a source that is there; omit to choose']],
  options: [['--handshake', 'wait for the handshake that brings the secret (Asana, Notion)']],
  env: SOURCE_ENV,
  exits: [7, 130],
  run: runAdd,
  print: printEach(printAdded),
  json: addedJson,
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
how its deliveries are signed. Its address is POST /webhook/<name>. relay source add lists the senders that have
a scheme; hmac, token, basic and none are for others.`,
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

type AddInput = Flags & { readonly scheme?: string; readonly handshake?: boolean }

async function* runAdd(shell: Shell, flags: AddInput) {
  const { out } = shell
  await using profile = await openProfile(shell, flags, { mustExist: false })
  const { instance } = profile
  refuseMemory(profile, 'sources')
  const text = flags.scheme ?? (await askSender(shell))
  if (text === undefined) {
    yield* KNOWN_SENDERS
    return
  }
  const { name, scheme } = await readNamed(shell, profile, text)
  const { handshake = false } = flags
  const secret = handshake
    ? await awaitSecret(shell, profile, { name, scheme })
    : await readSecret(shell, profile, { name, scheme })
  const data = await profile.createData()
  const { isReplaced, doubt, ownKey } = await storeSource(data.store, { name, scheme }, secret)
  const sources = await readSources(shell, profile, data)
  const stored = sources.find((source) => source.name === name)
  const { reloaded, problem } = await applyStored(shell, profile, 'sources')
  const served = reloaded?.sources.find((source) => source.name === name)
  const address = served ? served.address : addressesOf(profile)(name)
  const tunnelling = `${stopFirst(profile)}${profile.command('serve --tunnel')}`
  const pid = served && instance?.pid
  const verifyToken = verifyTokenOf(scheme, secret)
  yield { name, scheme, address, isReplaced, tunnelling, pid, verifyToken, ownKey }
  if (isReplaced)
    out.say(
      `The secret before it is accepted too, until another replaces this one. ${profile.command(`source remove ${name}`)} removes both`,
    )
  if (doubt !== undefined) out.log.warn(doubt)
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

function addedJson(added: Added) {
  if ('title' in added) {
    const { name, title, secret, page } = added
    return { type: 'sender', name, title, secret, page }
  }
  const { name, scheme, address, isReplaced, verifyToken, ownKey } = added
  const token = verifyToken === undefined ? {} : { verifyToken }
  const key = ownKey === undefined ? {} : { ownKey }
  return { type: 'source', name, scheme, address, replaced: isReplaced, ...token, ...key }
}

/** Width of the longest name of a sender. */
const NAME_WIDTH = Math.max(...KNOWN_SENDERS.map(({ name }) => name.length))

function printAdded(added: Added, out: Output): void {
  if ('title' in added) return out.result(`${added.name.padEnd(NAME_WIDTH)}  ${added.title}`)
  const { name, address, tunnelling, pid, verifyToken, ownKey } = added
  const what = ownKey === undefined ? 'secret' : 'public key'
  out.say(`Stored the ${what} of ${name}. ${addressText(address)}`)
  if (verifyToken !== undefined) out.say(`The verify token to enter there: ${verifyToken}`)
  if (ownKey !== undefined) {
    out.say(
      `What relay makes itself (trigger, replay --set) has its own signature. A program takes that with this key:`,
    )
    out.say(ownKey)
  }
  if (pid !== undefined) out.say(`Process ${pid} takes its deliveries from now on`)
  if (address !== null && isLoopback(new URL(address).hostname))
    out.say(`Only this machine reaches that. ${tunnelling} prints an address for the internet`)
}

/** Finds an existing source, or parses a new one. @throws RelayError `usage` */
async function readNamed(shell: Shell, profile: Profile, text: string): Promise<NamedScheme> {
  const data = await profile.data().catch(noDataYet)
  return chooseSource(text, {
    known: await readSources(shell, profile, data),
    place: '<scheme>',
    unsigned: (name) => `${stopFirst(profile, 'Start ')}${profile.command(`serve --source ${name}=none`)}`,
  })
}

/**
 * Asks which sender it is: a name, a part of one, which searches, or a whole scheme. Undefined without a terminal.
 * @throws RelayError `cancelled` at Ctrl-C
 */
async function askSender(shell: Shell): Promise<string | undefined> {
  if (!canAsk(shell)) return undefined
  let found: readonly KnownSender[] = KNOWN_SENDERS
  using prompt = new Prompt(shell)
  for (;;) {
    for (const { name, title } of found) shell.out.say(`${name.padEnd(NAME_WIDTH)}  ${title}`)
    const text = await prompt.text('Sender (a part of its name searches)')
    const [first = ''] = text.split(' ')
    if (text.includes('=') || SCHEME_NAMES.includes(first)) return text
    found = searchSenders(text)
    const [only, ...others] = found
    if (only && others.length === 0) return only.name
    if (!only)
      shell.out.say(
        `No sender has "${text}" in its name. hmac header=… is for those without one: ${anywhere('source add --help')}`,
      )
  }
}

const INPUT = { tooLarge: 'longer than any secret (4 KiB)', limit: MAX_SECRET }

/**
 * Reads a secret from a terminal, which does not show it, or from all of standard input. Surrounding white space is
 * removed.
 */
async function readSecret(shell: Shell, profile: Profile, { name, scheme }: NamedScheme): Promise<Secret> {
  if (canAsk(shell)) {
    const about = knownSender(scheme)
    if (about) shell.out.say(`The secret of ${name} is ${about.secret}. ${about.page}`)
    using prompt = new Prompt(shell)
    const what =
      senderOf(scheme).keyPairFor(new Secret('')) === undefined ? 'Secret' : 'Public key, in one line,'
    return readSourceSecret(
      await prompt.text(`${what} of ${name} (not shown)`, { hidden: true }),
      'The answer',
      scheme,
    )
  }
  if (shell.stdin.isTTY === true)
    throw new RelayError(
      'usage',
      `A terminal would show the secret. Pipe it in, for example ${profile.command(`source add ${name}`)} < secret.txt`,
    )
  const text = inputText(await readInput(shell, '-', INPUT), 'Standard input')
  return readSourceSecret(text, 'Standard input', scheme)
}

/** Longest wait for a handshake: entering an address at the sender takes minutes. Milliseconds. */
const HANDSHAKE_MS = 600_000

/**
 * Waits for the secret that the handshake of a sender brings. Prints it where the user must enter it at the sender.
 * @throws RelayError `usage` for a sender that brings none; `unavailable` while no relay runs; `timed_out`
 */
async function awaitSecret(shell: Shell, profile: Profile, source: NamedScheme): Promise<Secret> {
  const { name, scheme } = source
  const { out } = shell
  if (!senderOf(scheme).bringsSecret)
    throw new RelayError('usage', `No handshake of ${scheme} brings a secret: give the one that it shows`)
  const { instance } = profile
  if (!instance)
    throw new RelayError(
      'unavailable',
      `Only a running relay gets the handshake. Start it with ${startCommand(profile)}, and run this again`,
    )
  let isWaiting = false
  for await (const _ of wakeups(shell, profile, { limit: HANDSHAKE_MS })) {
    const { secret } = await callInstance(instance, 'expect secret', { name, scheme }, shell)
    if (secret !== null) return taken(secret, source, out)
    if (!isWaiting)
      out.say(`Waiting for the handshake of ${name}. Enter its address there: ${addressesOf(profile)(name)}`)
    isWaiting = true
  }
  throw new RelayError('timed_out', `No handshake of ${name} has come within 10m`)
}

/** Prints a secret that its user must enter at the sender, as at Notion. */
function taken(secret: string, { scheme }: NamedScheme, out: Pick<Output, 'say'>): Secret {
  if (senderOf(scheme).handshakes.includes('verification_token'))
    out.say(`The verification token to enter there: ${secret}`)
  return new Secret(secret)
}

/** Description of a source. */
interface Listed extends Pick<SetSource, 'name' | 'scheme' | 'secrets'> {
  readonly address: string
  /** Place of its secret. Null for none. */
  readonly secret: string | null
  /** Text to enter at a sender that asks for a verify token. */
  readonly verifyToken: string | undefined
  /** The public half of relay's own key pair, for a sender that signs with one. */
  readonly ownKey: string | undefined
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
    const refused = refusals?.findLast((each) => each.source === name && each.status >= 400)
    const secret = secretOrigin?.text ?? null
    const token = verifyTokenOf(scheme, secrets.current)
    list.push({
      name,
      scheme,
      secrets,
      address: addressOf(name),
      secret,
      verifyToken: token,
      ownKey: senderOf(scheme).publicHalf(secrets),
      delivery,
      refused,
    })
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
  for (const { name, verifyToken } of found.list)
    if (verifyToken !== undefined) out.result(`verify token of ${name}: ${verifyToken}`)
  for (const { name, ownKey } of found.list)
    if (ownKey !== undefined) out.result(`key that relay has for ${name}: ${ownKey}`)
  if (found.restart !== undefined) out.say(found.restart)
}

function listJson(found: SourceList) {
  if (found.type === 'secret') return [marked({ name: own(found.name), value: own(found.value) })]
  return found.list.map(({ name, scheme, address, secret, secrets, verifyToken, ownKey, ...listed }) => {
    const { delivery, refused } = listed
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
      ...(verifyToken !== undefined && { verifyToken: own(verifyToken) }),
      ...(ownKey !== undefined && { ownKey: own(ownKey) }),
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
  const { reloaded, problem } = await applyStored(shell, profile, 'sources')
  yield { type: 'source', name, removed: true }
  if (problem !== undefined) out.log.warn(problem)
  if (json) return
  const isServed = reloaded?.sources.some((source) => source.name === name)
  if (reloaded?.removed.includes(name)) out.say(`Process ${instance?.pid} refuses its deliveries from now on`)
  else if (other && (isServed ?? !instance)) out.log.warn(`${name} is still set by ${other.origin}`)
}
