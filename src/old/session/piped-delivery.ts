import { addAbortSignal, Readable } from 'node:stream'
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { readBounded, TooManyBytes } from '../../base/read-bounded.js'
import { parseJson } from '../../json/parse.js'
import type { Context } from '../context.js'
import { readInput } from '../input.js'
import type { NamedDelivery } from './delivery-target.js'

/** 128 MiB: the largest delivery (25 MiB) as `wait --json` prints it, with its text escaped and its payload once more. */
const MAX_BYTES = 134_217_728
const INPUT = { name: 'Standard input', tooLarge: 'larger than any delivery (128 MiB)' }

const NEWLINE = 0x0a

const piped = z.object({ event: z.string().min(1), payload: z.record(z.string(), z.unknown()) })

/**
 * Reads one delivery from standard input, an object as `relay wait --json` prints it.
 * @throws RelayError `no_match` for no input, which a `relay wait` without a result leaves; `usage` for anything else;
 * `too_large`; AbortError when the context's signal aborts.
 */
export async function readDelivery({ stdin, signal }: Context): Promise<NamedDelivery> {
  const input = addAbortSignal(signal, stdin)
  return parsed(await readInput(() => readBounded(input, MAX_BYTES), { ...INPUT, signal }))
}

/** The same from the first line. The context that it returns has the rest as standard input. */
export async function readDeliveryLine(
  context: Context,
): Promise<{ readonly delivery: NamedDelivery; readonly rest: Context }> {
  const { stdin, signal } = context
  const chunks = addAbortSignal(signal, stdin)[Symbol.asyncIterator]()
  const { line, after } = await readInput(() => readLine(chunks), { ...INPUT, signal })
  const rest = Readable.from(following(after, chunks), { objectMode: false })
  return { delivery: parsed(line), rest: { ...context, stdin: rest } }
}

async function readLine(chunks: AsyncIterator<Buffer>): Promise<{ line: Buffer; after: Buffer }> {
  const line: Buffer[] = []
  let size = 0
  for (;;) {
    const { value, done } = await chunks.next()
    if (done) return { line: Buffer.concat(line), after: Buffer.alloc(0) }
    const end = value.indexOf(NEWLINE)
    line.push(end < 0 ? value : value.subarray(0, end))
    size += value.byteLength
    if (size > MAX_BYTES) throw new TooManyBytes(MAX_BYTES)
    if (end >= 0) return { line: Buffer.concat(line), after: value.subarray(end + 1) }
  }
}

async function* following(first: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  for (;;) {
    const { value, done } = await chunks.next()
    if (done) return
    yield value
  }
}

function parsed(bytes: Buffer): NamedDelivery {
  if (!bytes.some((byte) => byte > 0x20))
    throw new RelayError(
      'no_match',
      'Standard input has no delivery. --from - reads one as relay wait --json prints it',
    )
  const { data } = piped.safeParse(jsonOf(bytes))
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
