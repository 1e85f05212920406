import { createReadStream } from 'node:fs'
import path from 'node:path'
import { addAbortSignal } from 'node:stream'
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { readBounded, TooManyBytes } from '../../base/read-bounded.js'
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
  if (from === '-') {
    const read = (): Promise<Buffer> => readBounded(standardInput(shell), MAX_DELIVERY)
    return fixed(
      targetOfDelivery(parseDelivery(await readInput(read, { ...DELIVERY_INPUT, signal: shell.signal }))),
    )
  }
  return async ({ journal }) => {
    const entry = await findEntry(journal, from)
    const { n, event } = entry
    return targetOfDelivery({
      name: `#${n} (${eventName(entry)})`,
      event,
      payload: readPayload(entry)?.value,
    })
  }
}

function fixed(target: Target): FindTarget {
  return async () => target
}

/** 128 MiB: the largest delivery (25 MiB) as `wait --json` prints it, with its text escaped and its payload once more. */
const MAX_DELIVERY = 134_217_728
const DELIVERY_INPUT = { name: 'Standard input', tooLarge: 'larger than any delivery (128 MiB)' }

const NEWLINE = 0x0a

/** Opened only when it is used. */
function standardInput({ stdin, signal }: Shell): AsyncIterable<Buffer> {
  return addAbortSignal(signal, stdin)
}

/** The delivery in the first line of standard input, and what follows it. */
async function readDeliveryLine(
  shell: Shell,
): Promise<{ readonly delivery: NamedDelivery; readonly rest: AsyncIterable<Buffer> }> {
  const chunks = standardInput(shell)[Symbol.asyncIterator]()
  const line: Buffer[] = []
  let after: Buffer = Buffer.alloc(0)
  const readLine = async (): Promise<void> => {
    for (let size = 0, end = -1; end < 0;) {
      const { value, done } = await chunks.next()
      if (done) return
      end = value.indexOf(NEWLINE)
      line.push(end < 0 ? value : value.subarray(0, end))
      if (end >= 0) after = value.subarray(end + 1)
      size += value.byteLength
      if (size > MAX_DELIVERY) throw new TooManyBytes(MAX_DELIVERY)
    }
  }
  await readInput(readLine, { ...DELIVERY_INPUT, signal: shell.signal })
  return { delivery: parseDelivery(Buffer.concat(line)), rest: following(after, chunks) }
}

async function* following(first: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* { [Symbol.asyncIterator]: () => chunks }
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

/** Reads target and text. Where both are on standard input, the delivery is its first line and the text is the rest. */
export async function readComment(
  shell: Shell,
  flags: CommentFlags,
  operands: Operands,
): Promise<{ readonly find: FindTarget; readonly body: string }> {
  const source = { argument: operands.other, file: flags.bodyFile }
  const isShared = flags.from === '-' && (source.argument === '-' || source.file === '-')
  if (isShared) {
    const { delivery, rest } = await readDeliveryLine(shell)
    const body = await readText(shell, source, rest, 'Standard input has no text after the delivery')
    return { find: fixed(targetOfDelivery(delivery)), body }
  }
  // The text first: standard input may be a relay wait of minutes, and an error need not wait for it.
  const body = await readText(shell, source)
  return { find: await readTarget(shell, flags, operands), body }
}

/** 1 MiB: many times the longest comment that a code host accepts. */
const MAX_TEXT = 1_048_576

/**
 * The text of the argument, a file, or standard input (`-` in both), without its byte order mark. `stdin`: what is left of standard input.
 * `empty`: the message for a blank text.
 * @throws RelayError `usage` for no text, two texts, or one that is blank, not UTF-8 or not readable; `too_large` beyond 1 MiB; the
 * signal's AbortError
 */
async function readText(
  shell: Shell,
  { argument, file }: { readonly argument: string | undefined; readonly file: string | undefined },
  stdin?: AsyncIterable<Uint8Array>,
  empty = 'The text is empty',
): Promise<string> {
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as an argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) {
    const how = shell.stdin.isTTY === true ? '- to type it here' : '- to read standard input'
    throw new RelayError('usage', `No text given. Give it as an argument, with --body-file, or ${how}`)
  }
  const text = source === argument && source !== '-' ? source : await read(shell, source, stdin)
  if (!/\S/.test(text)) throw new RelayError('usage', empty)
  return text
}

async function read(shell: Shell, source: string, stdin?: AsyncIterable<Uint8Array>): Promise<string> {
  const { cwd, signal } = shell
  const isStandard = source === '-'
  const name = isStandard ? 'standard input' : `--body-file: ${source}`
  const input = isStandard
    ? (stdin ?? standardInput(shell))
    : addAbortSignal(signal, createReadStream(path.resolve(cwd, source)))
  const about = { name, tooLarge: 'larger than 1 MiB', signal }
  const bytes = await readInput(() => readBounded(input, MAX_TEXT), about)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new RelayError('usage', `${name} is not UTF-8`, { cause })
  }
}
