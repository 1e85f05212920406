import { RelayError } from '../../base/errors.js'
import {
  type Account,
  type CommentTarget,
  type Merged,
  type MergeMethod,
  type MergeOptions,
  type Reaction,
  REACTIONS,
  type Subject,
} from '../../codehost/host.js'
import { parseStickyKey, requireGreen, writeSticky } from '../../codehost/pipelines.js'
import type { Shell } from '../command.js'
import { attach } from '../profile.js'
import { openSession, type Session } from '../session.js'
import { checkHost, formatTarget, type Target } from '../target.js'
import {
  type ActionFlags,
  type CommentFlags,
  type FindTarget,
  readComment,
  readOperands,
  readTarget,
} from './action-input.js'

// relay comment, merge and react: one write to the code host each.

/** What an action works with, once the user's token is known. */
interface Acting extends Pick<Session, 'host' | 'database'> {
  readonly account: Account
  readonly signal: AbortSignal
}

interface Action<Result> {
  /** Completes "would …". */
  readonly description: string
  /** As `POST /api/<name>` takes it. */
  readonly request: object
  /**
   * Reads what the write depends on, also with `--dry-run`, and resolves to the action that remains. Absent: it depends on nothing.
   * @throws RelayError when the write is not to be sent
   */
  readonly check?: (acting: Acting) => Promise<Action<Result>>
  readonly send: (acting: Acting) => Promise<Result>
  /** The line to print, for a person or for a pipe; undefined for none. */
  readonly line: (result: Result, isForPerson: boolean) => string | undefined
  /** A message about the result, also under `--json`. */
  readonly note?: (result: Result) => string | undefined
}

/**
 * Sends a write once and prints its result. With `--dry-run` it prints what it would do, and writes nothing; only `check` then asks the
 * code host, or renews a token.
 * @throws RelayError as `openSession`, `find`, `Session.owner`, the action and `CodeHost`, with the next step if there is one
 */
async function act<Result extends object>(
  shell: Shell,
  flags: ActionFlags,
  name: 'comment' | 'merge' | 'react',
  find: FindTarget,
  plan: (target: Target) => Action<Result>,
): Promise<void> {
  const { out, json, signal } = shell
  await using session = await openSession(shell, await attach(shell, flags))
  const { host, user, database } = session
  const target = await find(session)
  checkHost(target, host.url)
  const planned = plan(target)
  const printPlan = ({ description, request }: Action<Result>): void => {
    if (!json) return out.say(`would ${description} at ${host.url} as ${user}`)
    const place = { provider: host.name, providerUrl: host.url }
    out.object({ dryRun: true, action: name, target: formatTarget(target), user, ...place, request })
  }
  if (flags.dryRun && !planned.check) return printPlan(planned)
  const { accessToken } = await session.owner({ signal })
  const acting = { host, database, account: host.as(accessToken, { signal }), signal }
  const explain = (error: unknown): never => {
    throw withNextStep(error, session)
  }
  const action = (await planned.check?.(acting).catch(explain)) ?? planned
  if (flags.dryRun) return printPlan(action)
  signal.throwIfAborted()
  const result = await action.send(acting).catch((cause: unknown) => {
    if (!signal.aborted) return explain(cause)
    const text = 'Interrupted; the request may have been carried out all the same'
    throw new RelayError('cancelled', text, { cause })
  })
  const line = action.line(result, out.isTerminal)
  if (json) out.object(result)
  else if (line !== undefined) out.result(line)
  const note = action.note?.(result)
  if (note !== undefined) out.say(note)
}

function withNextStep(error: unknown, { user, host }: Session): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, retryAfter } = error
  if (kind === 'invalid_token')
    return new RelayError('unauthenticated', `${message} for ${user} at ${host.url}: run relay login`, {
      cause: error,
    })
  return retryAfter === undefined
    ? error
    : new RelayError(kind, `${message}; try again in ${retryAfter} s`, { retryAfter, cause: error })
}

/** The issue or pull request of a target. */
function subjectOf({ owner, repo, number, kind }: Target): Subject {
  return { owner, repo, number, ...(kind && { kind }) }
}

// comment

/** Runs `relay comment`. */
export async function runComment(
  shell: Shell,
  flags: CommentFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const sticky = flags.sticky === undefined ? undefined : parseStickyKey(flags.sticky)
  const { find, body } = await readComment(shell, flags, readOperands(flags, [first, second], 1))
  await act(shell, flags, 'comment', find, (target) => {
    const on = subjectOf(target)
    const bytes = Buffer.byteLength(body)
    const size = `${bytes === 1 ? '1 byte' : `${bytes} bytes`}${sticky === undefined ? '' : `, sticky ${sticky}`}`
    const { owner, repo, number: issueNumber } = target
    return {
      description: `comment on ${formatTarget(target)} (${size})`,
      request: { owner, repo, issueNumber, body, ...(sticky !== undefined && { sticky }) },
      async send({ account, host, database, signal }) {
        if (sticky === undefined) return account.comment(on, body)
        const create = (text: string) => account.comment(on, text)
        const parts = { host, account, store: database.store, create }
        return writeSticky(parts, on, { key: sticky, body }, { signal })
      },
      line: ({ url }) => url,
    }
  })
}

// merge

interface MergeFlags extends ActionFlags {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
  readonly ifGreen?: boolean
}

/** Runs `relay merge`. */
export async function runMerge(shell: Shell, flags: MergeFlags, address?: string): Promise<void> {
  const { method, title, message, ifGreen, matchHead: sha } = flags
  // A shortened id matches no head, and would read like a changed head.
  if (sha !== undefined && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha))
    throw new RelayError('usage', '--match-head: must be a full commit id of 40 or 64 hexadecimal digits')
  const find = await readTarget(shell, flags, readOperands(flags, [address], 0))
  await act(shell, flags, 'merge', find, (target) => {
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
function merge(target: Target, options: MergeOptions, condition = ''): Action<Merged> {
  const { owner, repo, number: pullNumber } = target
  const { method } = options
  const name = formatTarget(target)
  return {
    description: `merge ${name}${method ? ` (${method})` : ''}${condition}`,
    request: { owner, repo, pullNumber, ...options },
    send: ({ account }) => account.merge(pullOf(target), options),
    line: ({ sha }, isForPerson) =>
      sha !== null && isForPerson ? `Merged ${name} as ${sha}` : (sha ?? undefined),
    note: ({ merged }) =>
      merged ? undefined : `${name} is not merged yet. The code host merges it when its checks have passed`,
  }
}

/** Merges exactly the head whose checks it has read, so that a push in between is not merged unchecked. */
function mergeIfGreen(target: Target, options: MergeOptions): Action<Merged> {
  const name = formatTarget(target)
  return {
    ...merge(target, options),
    async check({ account }) {
      const head = await account.headChecks(pullOf(target))
      if (options.sha !== undefined && options.sha !== head.sha)
        throw new RelayError('conflict', `${name} is not merged: its head is ${head.sha}`)
      requireGreen(name, head)
      const green = ', whose checks and statuses have all succeeded,'
      return merge(target, { ...options, sha: head.sha }, ` if its head is still ${head.sha}${green}`)
    },
  }
}

function pullOf(target: Target): Subject {
  return { ...subjectOf(target), kind: 'pull' }
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

/** Runs `relay react`. */
export async function runReact(
  shell: Shell,
  flags: ActionFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const operands = readOperands(flags, [first, second], 1)
  const content = parseReaction(operands.other)
  const find = await readTarget(shell, flags, operands)
  await act(shell, flags, 'react', find, (target) => {
    const { owner, repo, number: issueNumber, comment } = target
    const kind = comment?.kind === 'review' ? 'review' : 'comment'
    const on: CommentTarget | undefined = comment && { kind, id: comment.id }
    const what = kind === 'review' ? 'review comment' : kind
    const name = comment ? `${what} ${comment.id} on ${formatTarget(target)}` : formatTarget(target)
    const ids = comment && (kind === 'review' ? { reviewCommentId: comment.id } : { commentId: comment.id })
    return {
      description: `react ${content} to ${name}`,
      request: { owner, repo, issueNumber, ...ids, content },
      send: ({ account }) => account.react(subjectOf(target), content, on),
      line: (reacted, isForPerson) =>
        isForPerson && reacted.created ? `Reacted ${content} to ${name}` : reacted.content,
      note: ({ created }) => (created ? undefined : 'you had already added this reaction'),
    }
  })
}
