import { createReadStream } from 'node:fs'
import path from 'node:path'
import { addAbortSignal } from 'node:stream'
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { readBounded } from '../../base/bytes.js'
import { readPayload } from '../../journal/payload.js'
import { parseJson } from '../../json/parse.js'
import type { Flags, Shell } from '../command.js'
import { readInput } from '../input.js'
import { findEntry } from '../journal.js'
import { eventName } from '../output/deliveries.js'
import type { Session } from '../session.js'
import { type NamedDelivery, parseTarget, type Target, targetOfDelivery } from '../target.js'

// What comment, merge and react are given: their target, and the text of a comment.

export interface ActionFlags extends Flags {
  /** The delivery that names the target. */
  readonly from?: string
  readonly dryRun?: boolean
}

/** Finds the target of an action, in the journal of its session if that is necessary. */
export type FindTarget = (session: Pick<Session, 'journal'>) => Promise<Target>

// The target, and --from

/** The arguments of an action: its target, unless `--from` names that, and one more. */
export interface Operands {
  readonly address: string | undefined
  readonly other: string | undefined
}

/**
 * Takes the arguments apart: with `--from` there is no target among them. `others`: how many besides the target the command takes.
 * @throws RelayError `usage` for a target together with `--from`, or for neither
 */
export function readOperands(
  { from }: ActionFlags,
  [first, second]: readonly (string | undefined)[],
  others: 0 | 1,
): Operands {
  if (from === undefined) {
    if (first === undefined) throw new RelayError('usage', 'No target given. Give owner/repo#12, or --from')
    return { address: first, other: second }
  }
  if ((others === 0 ? first : second) === undefined) return { address: undefined, other: first }
  const given = JSON.stringify(first)
  throw new RelayError('usage', `The target is given twice: as ${given} and with --from ${from}`)
}

/**
 * Reads what names the target: an address, an entry of the journal, or a delivery on standard input.
 * @throws RelayError as `parseTarget`, `targetOfDelivery` and {@link parseDelivery}; the result as `findEntry`
 */
export async function readTarget(
  shell: Shell,
  { from = '' }: ActionFlags,
  { address }: Operands,
): Promise<FindTarget> {
  if (address !== undefined) return fixed(parseTarget(address))
  if (from === '-') return fixed(targetOfDelivery(parseDelivery(await readDelivery(shell, MAX_DELIVERY))))
  return async ({ journal }) => {
    const entry = await findEntry(journal, from)
    const name = `#${entry.n} (${eventName(entry)})`
    return targetOfDelivery({ name, event: entry.event, payload: readPayload(entry)?.value })
  }
}

function fixed(target: Target): FindTarget {
  return async () => target
}

/** 128 MiB: the largest delivery (25 MiB) as `wait --json` prints it, with its text escaped and its payload once more. */
const MAX_DELIVERY = 134_217_728

/** Standard input, which has a delivery, within a limit in bytes. @throws RelayError `too_large`; the signal's AbortError */
async function readDelivery({ stdin, signal }: Shell, limit: number): Promise<Buffer> {
  const tooLarge = 'larger than any delivery (128 MiB)'
  const read = (): Promise<Buffer> => readBounded(addAbortSignal(signal, stdin), limit)
  return readInput(read, { name: 'Standard input', tooLarge, signal })
}

const delivered = z.object({ event: z.string().min(1), payload: z.record(z.string(), z.unknown()) })

/**
 * A delivery as `relay wait --json` prints it.
 * @throws RelayError `no_match` for nothing, which a `relay wait` without a result leaves; `usage` for anything else
 */
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

// The text of a comment

export interface CommentFlags extends ActionFlags {
  readonly bodyFile?: string
  readonly sticky?: string
}

/** 1 MiB: many times the longest comment that a code host accepts. */
const MAX_TEXT = 1_048_576
const TEXT_TOO_LARGE = 'larger than 1 MiB'

/**
 * Reads target and text: the argument, a file, or standard input (`-` in both), without its byte order mark. Where both are on standard
 * input, the delivery is its first line and the text is the rest.
 * @throws RelayError as {@link readTarget}; `usage` for no text, two texts, or one that is blank, not UTF-8 or not readable; `too_large`
 * beyond 1 MiB; the signal's AbortError
 */
export async function readComment(
  shell: Shell,
  flags: CommentFlags,
  operands: Operands,
): Promise<{ readonly find: FindTarget; readonly body: string }> {
  const { other: argument } = operands
  const { from, bodyFile: file } = flags
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as an argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) {
    const how = shell.stdin.isTTY === true ? '- to type it here' : '- to read standard input'
    throw new RelayError('usage', `No text given. Give it as an argument, with --body-file, or ${how}`)
  }
  if (from === '-' && source === '-') {
    const input = await readDelivery(shell, MAX_DELIVERY + MAX_TEXT)
    const end = input.includes('\n') ? input.indexOf('\n') : input.length
    const delivery = parseDelivery(input.subarray(0, end))
    const bytes = input.subarray(end + 1)
    if (bytes.length > MAX_TEXT) throw new RelayError('too_large', `The text is ${TEXT_TOO_LARGE}`)
    const body = notBlank(decoded(bytes, 'standard input'), 'Standard input has no text after the delivery')
    return { find: fixed(targetOfDelivery(delivery)), body }
  }
  // The text first: standard input may be a relay wait of minutes, and an error need not wait for it.
  const body = notBlank(argument !== undefined && source !== '-' ? argument : await readText(shell, source))
  return { find: await readTarget(shell, flags, operands), body }
}

function notBlank(text: string, empty = 'The text is empty'): string {
  if (/\S/.test(text)) return text
  throw new RelayError('usage', empty)
}

async function readText({ stdin, cwd, signal }: Shell, source: string): Promise<string> {
  const [name, stream] =
    source === '-'
      ? ['standard input', stdin]
      : [`--body-file: ${source}`, createReadStream(path.resolve(cwd, source))]
  const read = (): Promise<Buffer> => readBounded(addAbortSignal(signal, stream), MAX_TEXT)
  return decoded(await readInput(read, { name, tooLarge: TEXT_TOO_LARGE, signal }), name)
}

function decoded(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new RelayError('usage', `${name} is not UTF-8`, { cause })
  }
}
