import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import {
  type Account,
  type CommentTarget,
  type MergeResult,
  type MergeMethod,
  type MergeOptions,
  type Reaction,
  REACTIONS,
} from '../../codehost/host.js'
import { parseStickyKey, requireGreen, writeSticky } from '../../codehost/pipelines.js'
import { readPayload } from '../../journal/payload.js'
import { parseJson } from '../../json/parse.js'
import type { Flags, Shell } from '../command.js'
import { readInput, textOf } from '../input.js'
import { interrupted } from '../instance-client.js'
import { findEntry } from '../journal.js'
import { eventName } from '../output/deliveries.js'
import { attach } from '../profile.js'
import { loginCommand, openSession, type Session } from '../session.js'
import {
  checkHost,
  formatTarget,
  type NamedDelivery,
  parseTarget,
  type Target,
  targetOfDelivery,
} from '../target.js'

// relay comment, merge and react: one write to the code host each.

interface ActionFlags extends Flags {
  readonly from?: string
  readonly dryRun?: boolean
}

interface Action<Result> {
  /** Completes "would …". */
  readonly description: string
  /** As `POST /api/<name>` takes it. */
  readonly request: object
  /** Reads what the write depends on, also with `--dry-run`, and resolves to the action that remains. Throws when it is not to be sent. */
  readonly check?: (account: Account) => Promise<Action<Result>>
  readonly send: (account: Account, session: Session) => Promise<Result>
  /** The line to print, for a person or for a pipe; undefined for none. */
  readonly line: (result: Result, isForPerson: boolean) => string | undefined
  /** A message about the result, also under `--json`. */
  readonly note?: (result: Result) => string | undefined
}

/**
 * Sends a write once and prints its result. With `--dry-run` it prints what it would do, and writes nothing; only `check` then asks the
 * code host, or renews a token. `given`: the target, unless an entry of the journal names it.
 */
async function act<Result extends object>(
  shell: Shell,
  flags: ActionFlags,
  name: 'comment' | 'merge' | 'react',
  given: Target | undefined,
  plan: (target: Target) => Action<Result>,
): Promise<void> {
  const { out, json, signal } = shell
  await using session = await openSession(shell, await attach(shell, flags))
  const { host, user } = session
  const target = given ?? (await targetOfEntry(session, flags))
  checkHost(target, host.url)
  const planned = plan(target)
  const printPlan = ({ description, request }: Action<Result>): void => {
    if (!json) return out.say(`would ${description} at ${host.url} as ${user}`)
    const place = { provider: host.name, providerUrl: host.url }
    out.object({ dryRun: true, action: name, target: formatTarget(target), user, ...place, request })
  }
  if (flags.dryRun && !planned.check) {
    await session.checkAccount()
    return printPlan(planned)
  }
  const { accessToken } = await session.owner()
  const account = host.as(accessToken, { signal })
  const explain = (error: unknown): never => {
    throw withNextStep(error, session)
  }
  const action = (await planned.check?.(account).catch(explain)) ?? planned
  if (flags.dryRun) return printPlan(action)
  signal.throwIfAborted()
  const result = await action.send(account, session).catch((cause: unknown) => {
    if (signal.aborted) throw interrupted(cause)
    return explain(cause)
  })
  const line = action.line(result, out.isTerminal)
  if (json) out.object(result)
  else if (line !== undefined) out.result(line)
  const note = action.note?.(result)
  if (note !== undefined) out.say(note)
}

function withNextStep(error: unknown, { user, host, attached }: Session): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, retryAfter } = error
  if (kind === 'invalid_token')
    return new RelayError(
      'unauthenticated',
      `${message} for ${user} at ${host.url}: run ${loginCommand(attached)}`,
      { cause: error },
    )
  return retryAfter === undefined
    ? error
    : new RelayError(kind, `${message}; try again in ${retryAfter} s`, { retryAfter, cause: error })
}

// The target, and --from

/** The arguments of an action: its target, unless `--from` names that, and one more. */
type Operands = readonly [address: string | undefined, other?: string | undefined]

/** The arguments with the target first, which `--from` replaces. `others`: how many besides the target the command takes. */
function readOperands({ from }: ActionFlags, [first, second]: Operands, others: 0 | 1): Operands {
  if (from === undefined) {
    if (first === undefined) throw new RelayError('usage', 'No target given. Give owner/repo#12, or --from')
    return [first, second]
  }
  if ((others === 0 ? first : second) === undefined) return [undefined, first]
  const given = JSON.stringify(first)
  throw new RelayError('usage', `The target is given twice: as ${given} and with --from ${from}`)
}

/** The target of an address, or of a delivery on standard input; undefined where an entry of the journal names it. */
async function readTarget(shell: Shell, from?: string, address?: string): Promise<Target | undefined> {
  if (address !== undefined) return parseTarget(address)
  return from === '-' ? targetOfDelivery(parseDelivery(await readInput(shell, '-', DELIVERY))) : undefined
}

async function targetOfEntry({ journal }: Session, { from = '' }: ActionFlags): Promise<Target> {
  const entry = await findEntry(journal, from)
  const name = `#${entry.n} (${eventName(entry)})`
  return targetOfDelivery({ name, event: entry.event, payload: readPayload(entry)?.value })
}

/** 128 MiB: the largest delivery (25 MiB) as `wait --json` prints it, with its text escaped and its payload once more. */
const DELIVERY = { tooLarge: 'larger than any delivery (128 MiB)', limit: 134_217_728 }

const delivered = z.object({ event: z.string().min(1), payload: z.record(z.string(), z.unknown()) })

/** A delivery as `relay wait --json` prints it. Nothing is what a `relay wait` without a result leaves. */
function parseDelivery(bytes: Buffer): NamedDelivery {
  if (!bytes.some((byte) => byte > 0x20))
    throw new RelayError(
      'no_match',
      'Standard input has no delivery. --from - reads one as relay wait --json prints it',
    )
  const { data } = delivered.safeParse(jsonOf(bytes))
  if (data) return { ...data, name: `the delivery on standard input (${data.event})` }
  throw new RelayError(
    'usage',
    'Standard input is not one delivery with its payload, as relay wait --json and relay show --json print it',
  )
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return parseJson(bytes)
  } catch {
    return undefined
  }
}

// comment

interface CommentFlags extends ActionFlags {
  readonly bodyFile?: string
  readonly sticky?: string
}

export async function runComment(
  shell: Shell,
  flags: CommentFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const sticky = flags.sticky === undefined ? undefined : parseStickyKey(flags.sticky)
  const { target: given, body } = await readComment(shell, flags, readOperands(flags, [first, second], 1))
  await act(shell, flags, 'comment', given, (target) => {
    const bytes = Buffer.byteLength(body)
    const size = `${bytes} byte${bytes === 1 ? '' : 's'}${sticky === undefined ? '' : `, sticky ${sticky}`}`
    const { owner, repo, number: issueNumber } = target
    return {
      description: `comment on ${formatTarget(target)} (${size})`,
      request: { owner, repo, issueNumber, body, ...(sticky !== undefined && { sticky }) },
      async send(account, { host, database }) {
        if (sticky === undefined) return account.comment(target, body)
        const create = (text: string) => account.comment(target, text)
        const parts = { host, account, store: database.store, create }
        return writeSticky(parts, target, { key: sticky, body }, shell)
      },
      line: ({ url }) => url,
    }
  })
}

/** 1 MiB: many times the longest comment that a code host accepts. */
const MAX_TEXT = 1_048_576
const TEXT_TOO_LARGE = 'larger than 1 MiB'

/**
 * Reads target and text: the argument, a file, or standard input (`-` in both), without its byte order mark. Where both are on standard
 * input, the delivery is its first line and the text is the rest.
 */
async function readComment(
  shell: Shell,
  { from, bodyFile: file }: CommentFlags,
  [address, argument]: Operands,
): Promise<{ readonly target: Target | undefined; readonly body: string }> {
  const { stdin } = shell
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as an argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) {
    const how = stdin.isTTY === true ? '- to type it here' : '- to read standard input'
    throw new RelayError('usage', `No text given. Give it as an argument, with --body-file, or ${how}`)
  }
  if (from === '-' && source === '-') {
    const input = await readInput(shell, '-', { ...DELIVERY, limit: DELIVERY.limit + MAX_TEXT })
    const end = input.includes('\n') ? input.indexOf('\n') : input.length
    const target = targetOfDelivery(parseDelivery(input.subarray(0, end)))
    const bytes = input.subarray(end + 1)
    if (bytes.length > MAX_TEXT) throw new RelayError('too_large', `The text is ${TEXT_TOO_LARGE}`)
    return {
      target,
      body: commentText(bytes, 'standard input', 'Standard input has no text after the delivery'),
    }
  }
  // The text first: standard input may be a relay wait of minutes, and an error need not wait for it.
  const name = source === '-' ? 'standard input' : `--body-file: ${source}`
  const isText = argument !== undefined && argument !== '-'
  const options = { name, tooLarge: TEXT_TOO_LARGE, limit: MAX_TEXT }
  const body = commentText(isText ? Buffer.from(argument) : await readInput(shell, source, options), name)
  return { target: await readTarget(shell, from, address), body }
}

function commentText(bytes: Uint8Array, name: string, blank = 'The text is empty'): string {
  const text = textOf(bytes, name)
  if (/\S/.test(text)) return text
  throw new RelayError('usage', blank)
}

// merge

interface MergeFlags extends ActionFlags {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
  readonly ifGreen?: boolean
}

export async function runMerge(shell: Shell, flags: MergeFlags, address?: string): Promise<void> {
  const { method, title, message, ifGreen, matchHead: sha } = flags
  // A shortened id matches no head, and would read like a changed head.
  if (sha !== undefined && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha))
    throw new RelayError('usage', '--match-head: must be a full commit id of 40 or 64 hexadecimal digits')
  const [named] = readOperands(flags, [address], 0)
  await act(shell, flags, 'merge', await readTarget(shell, flags.from, named), (target) => {
    const name = formatTarget(target)
    if (target.kind === 'issue')
      throw new RelayError(
        'usage',
        `${name} is an issue by its address. If it is a pull request, give ${name} as the target`,
      )
    const options = { method, title, message, sha: sha?.toLowerCase() }
    return ifGreen ? mergeIfGreen(target, options) : merge(target, options, sha && ` if its head is ${sha}`)
  })
}

/** Merges; `condition` completes the description. */
function merge(target: Target, options: MergeOptions, condition = ''): Action<MergeResult> {
  const { owner, repo, number: pullNumber } = target
  const { method } = options
  const name = formatTarget(target)
  return {
    description: `merge ${name}${method ? ` (${method})` : ''}${condition}`,
    request: { owner, repo, pullNumber, ...options },
    send: (account) => account.merge({ ...target, kind: 'pull' }, options),
    line: ({ sha }, isForPerson) =>
      sha !== null && isForPerson ? `Merged ${name} as ${sha}` : (sha ?? undefined),
    note: ({ merged }) =>
      merged ? undefined : `${name} is not merged yet. The code host merges it when its checks have passed`,
  }
}

/** Merges exactly the head whose checks it has read, so that a push in between is not merged unchecked. */
function mergeIfGreen(target: Target, options: MergeOptions): Action<MergeResult> {
  const name = formatTarget(target)
  return {
    ...merge(target, options),
    async check(account) {
      const head = await account.headChecks({ ...target, kind: 'pull' })
      if (options.sha !== undefined && options.sha !== head.sha)
        throw new RelayError('conflict', `${name} is not merged: its head is ${head.sha}`)
      requireGreen(name, head)
      const green = ', whose checks and statuses have all succeeded,'
      return merge(target, { ...options, sha: head.sha }, ` if its head is still ${head.sha}${green}`)
    },
  }
}

// react

/** Other spellings of the reactions: the emoji that the code hosts show, and the names of the emoji. */
const ALIASES: Readonly<Record<Reaction, readonly string[]>> = {
  '+1': ['👍', 'thumbsup'],
  '-1': ['👎', 'thumbsdown'],
  laugh: ['😄', '😆', '😀', '😂', 'smile', 'laughing'],
  confused: ['😕'],
  heart: ['❤', '♥'],
  hooray: ['🎉', 'tada'],
  rocket: ['🚀'],
  eyes: ['👀'],
}

/** Variation selectors (text or emoji style) and skin tones, which change only the look of an emoji. */
const VARIANTS = /\p{Variation_Selector}|\p{Emoji_Modifier}/gu

/** A reaction by its name, with or without colons, or the emoji itself. @throws RelayError `usage` that lists all reactions */
function parseReaction(text: string | undefined): Reaction {
  if (text === undefined)
    throw new RelayError('usage', `No reaction given. Give one of ${REACTIONS.join(', ')}, or the emoji`)
  const plain = text.replaceAll(VARIANTS, '').toLowerCase()
  const name = /^:(.+):$/.exec(plain)?.[1] ?? plain
  const found = REACTIONS.find((reaction) => reaction === name || ALIASES[reaction].includes(name))
  if (found !== undefined) return found
  const list = REACTIONS.map((reaction) => `${reaction} ${ALIASES[reaction][0]}`).join(', ')
  throw new RelayError('usage', `${JSON.stringify(text)} is not a reaction. Give one of ${list}`)
}

export async function runReact(
  shell: Shell,
  flags: ActionFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const [address, word] = readOperands(flags, [first, second], 1)
  const content = parseReaction(word)
  await act(shell, flags, 'react', await readTarget(shell, flags.from, address), (target) => {
    const { owner, repo, number: issueNumber, comment } = target
    const kind = comment?.kind === 'review' ? 'review' : 'comment'
    const on: CommentTarget | undefined = comment && { kind, id: comment.id }
    const what = kind === 'review' ? 'review comment' : kind
    const name = comment ? `${what} ${comment.id} on ${formatTarget(target)}` : formatTarget(target)
    const ids = comment && (kind === 'review' ? { reviewCommentId: comment.id } : { commentId: comment.id })
    return {
      description: `react ${content} to ${name}`,
      request: { owner, repo, issueNumber, ...ids, content },
      send: (account) => account.react(target, content, on),
      line: (reacted, isForPerson) =>
        isForPerson && reacted.created ? `Reacted ${content} to ${name}` : reacted.content,
      note: ({ created }) => (created ? undefined : 'you had already added this reaction'),
    }
  })
}
