import { RelayError } from '../base/errors.js'
import type { Account, CodeHost } from '../codehost/host.js'
import { Refusal } from '../codehost/refusal.js'
import { readContent } from '../senders/content.js'
import { isObject, ownMember, parseJson } from '../json/parse.js'
import { type Flags, printEach, type Shell } from './command.js'
import { readInput } from './input.js'
import { interrupted } from './instance-client.js'
import { findEntry } from './journal.js'
import { eventName } from './output/deliveries.js'
import { type MarkedObject, marked, outside, own } from './output/outside.js'
import type { Output } from './output/output.js'
import { loginCommandLine } from './advice.js'
import { openUserProfile, type UserProfile } from './user-profile.js'
import {
  formatTarget,
  type NamedDelivery,
  parseTarget,
  type ActionTarget,
  targetAt,
  targetOfDelivery,
} from './target.js'

// The commands comment, merge and react. Each makes one write at the code host.

export interface ActionFlags extends Flags {
  readonly target?: string | undefined
  readonly from?: string
  readonly dryRun?: boolean
}

export interface Action<Result> {
  /** Completes "would …". */
  readonly description: string
  /** Body of the same request to `POST /api/<name>`. */
  readonly request: object
  /**
   * Reads the state that the write depends on, also with `--dry-run`, and resolves to the remaining action. Throws if
   * it must not be sent.
   */
  readonly check?: (account: Account) => Promise<Action<Result>>
  readonly send: (account: Account, profile: UserProfile) => Promise<Result>
  readonly describe: (result: Result, profile: UserProfile) => Described
}

/** Result of an action. */
interface Described {
  readonly object: MarkedObject
  /** Line for a pipe; undefined for none. */
  readonly line: string | undefined
  /** Line for a person. Default: `line`. */
  readonly sentence?: string | undefined
  /** Message about the result, also with `--json`. */
  readonly note?: string | undefined
}

/** Result of an action, or its plan with `--dry-run`. */
type Acted =
  | ({ readonly type: 'done' } & Described)
  | { readonly type: 'plan'; readonly object: MarkedObject; readonly line: string }

/**
 * Sends one write. With `--dry-run` it only prints the plan; the code host is then called, and a token renewed, only
 * for `check`.
 * @param given the target; undefined if an entry of the journal names it
 */
export async function* performAction<Result extends object>(
  shell: Shell,
  flags: ActionFlags,
  name: 'comment' | 'merge' | 'react',
  given: ActionTarget | undefined,
  plan: (target: ActionTarget, host: CodeHost) => Action<Result>,
): AsyncGenerator<Acted> {
  const { out, signal } = shell
  await using profile = await openUserProfile(shell, flags)
  const { host, user } = profile
  const target = targetAt(given ?? (await targetOfEntry(profile, flags)), host)
  const planned = plan(target, host)
  const planOf = ({ description, request }: Action<Result>): Acted => {
    const about = { dryRun: true, action: name, target: own(formatTarget(target)), user: own(user) } as const
    const place = { provider: host.name, providerUrl: own(host.url) }
    const object = marked({ ...about, ...place, request: outside(request) })
    return { type: 'plan', object, line: `would ${description} at ${host.url} as ${user}` }
  }
  if (flags.dryRun && !planned.check) {
    await profile.checkAccount()
    yield planOf(planned)
    return
  }
  const { accessToken } = await profile.owner()
  const account = host.as(accessToken, { signal })
  const explain = (error: unknown): never => {
    throw withNextStep(error, profile)
  }
  const action = (await planned.check?.(account).catch(explain)) ?? planned
  if (flags.dryRun) {
    yield planOf(action)
    return
  }
  signal.throwIfAborted()
  const result = await action.send(account, profile).catch((cause: unknown) => {
    if (signal.aborted) throw interrupted(cause)
    return explain(cause)
  })
  const described = action.describe(result, profile)
  yield { type: 'done', ...described }
  // A person's sentence says it, too.
  const isSaid = out.isTerminal && !shell.json && described.sentence !== undefined
  if (described.note !== undefined && !isSaid) out.say(described.note)
}

function printActed(acted: Acted, out: Output): void {
  if (acted.type === 'plan') return out.say(acted.line)
  const { line, sentence = line } = acted
  const shown = out.isTerminal ? sentence : line
  if (shown !== undefined) out.result(shown)
}

/** Output of the results of all actions. */
export const ACTED = { print: printEach(printActed), json: ({ object }: Acted) => object }

function withNextStep(error: unknown, profile: UserProfile): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, retryAfter } = error
  if (kind === 'invalid_token')
    return new RelayError(
      'unauthenticated',
      `${message} for ${profile.user} at ${profile.host.url}: run ${loginCommandLine(profile)}`,
      { cause: error },
    )
  if (error instanceof Refusal && error.missingRight !== undefined)
    return new RelayError(
      kind,
      `${message.replace(/\.$/, '')}. The token needs ${error.missingRight}: sign in with that, by ${loginCommandLine(profile)}`,
      { cause: error },
    )
  return retryAfter === undefined
    ? error
    : new RelayError(kind, `${message}; try again in ${retryAfter} s`, { retryAfter, cause: error })
}

// Target, and --from

/** Arguments of an action: its target, unless `--from` names that, and one more. */
export type Operands = readonly [address: string | undefined, other?: string | undefined]

/**
 * Sorts the arguments, so that the target is first or replaced by `--from`. `others` is the number of further
 * arguments.
 */
export function readOperands({ from }: ActionFlags, [first, second]: Operands, others: 0 | 1): Operands {
  if (from === undefined) {
    if (first === undefined) throw new RelayError('usage', 'No target given. Give owner/repo#12, or --from')
    return [first, second]
  }
  if ((others === 0 ? first : second) === undefined) return [undefined, first]
  const given = JSON.stringify(first)
  throw new RelayError('usage', `The target is given twice: as ${given} and with --from ${from}`)
}

/**
 * Reads the target from an address, or from a delivery on standard input. Undefined if an entry of the journal names
 * it.
 */
export async function readTarget(
  shell: Shell,
  from?: string,
  address?: string,
): Promise<ActionTarget | undefined> {
  if (address !== undefined) return parseTarget(address)
  return from === '-' ? targetOfDelivery(parseDelivery(await readInput(shell, '-', DELIVERY))) : undefined
}

async function targetOfEntry({ journal }: UserProfile, { from = '' }: ActionFlags): Promise<ActionTarget> {
  const entry = await findEntry(await journal(), from)
  const name = `#${entry.n} (${eventName(entry)})`
  return targetOfDelivery({ name, event: entry.event, payload: readContent(entry.body).value })
}

/**
 * Limit of a delivery on standard input: 128 MiB, for the largest delivery (25 MiB) as `wait --json` prints it, with
 * escaped text and a second copy as payload.
 */
export const DELIVERY = { tooLarge: 'larger than any delivery (128 MiB)', limit: 134_217_728 }

/**
 * Parses a delivery as `relay wait --json` prints it.
 * @throws RelayError `no_match` for empty input, as after a `relay wait` without a result; `usage` for anything else
 */
export function parseDelivery(bytes: Buffer): NamedDelivery {
  if (!bytes.some((byte) => byte > 0x20))
    throw new RelayError(
      'no_match',
      'Standard input has no delivery. --from - reads one as relay wait --json prints it',
    )
  const delivery = jsonOf(bytes)
  const [event, payload] = [ownMember(delivery, 'event'), ownMember(delivery, 'payload')]
  if (typeof event === 'string' && event !== '' && isObject(payload))
    return { event, payload, name: `the delivery on standard input (${event})` }
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
