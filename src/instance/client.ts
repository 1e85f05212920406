// Calls to a running instance. Loaded once one is found, since an HTTP client takes longer to load than most commands need without it.
import { RelayError } from '../base/errors.js'
import { type Cancellable, deadline } from '../base/wait.js'
import { describeWithoutQuote, isUnreached } from '../net/errors.js'
import { createLoopbackClient } from '../net/loopback.js'
import {
  answerText,
  callText,
  type ChangeLine,
  errorOf,
  type InstanceRecord,
  prove,
  PROOF_HEADER,
  sameProof,
  SILENCE_MS,
  type Topic,
} from './protocol.js'

/** Error for a response that lacks the instance's proof: another program uses its address. */
export class Unproven extends RelayError {
  constructor({ url }: InstanceRecord) {
    super('unavailable', `${url} gave an answer that the instance has not proved`)
  }
}

/** Makes the request of a call, and the proof that its response must have. */
function requestOf(record: InstanceRecord, call: string, args: object) {
  const body = callText(call, args)
  const proof = prove(record, body)
  return {
    url: new URL('/instance', record.url),
    request: {
      method: 'POST',
      headers: { [PROOF_HEADER]: proof, 'Content-Type': 'application/json' },
      body,
    },
    expected: (status: number, text: string): string => prove(record, answerText(proof, status, text)),
  } as const
}

/**
 * Sends one call to the instance of a record, once, and returns the result. The call proves that it comes from a
 * program that can read the profile's data, and carries no token. The response proves that the instance answered this
 * call.
 * @param limit milliseconds for the whole response
 * @throws RelayError of the instance, of the same kind; {@link Unproven}; `unavailable` for a call that this instance
 * does not know. Any other error without a complete response: a TimeoutError at the limit, the reason of the signal, an
 * error with a code
 */
export async function askInstance(
  record: InstanceRecord,
  call: string,
  args: object,
  { limit, signal }: Cancellable & { readonly limit: number },
): Promise<unknown> {
  const { url, request, expected } = requestOf(record, call, args)
  using client = createLoopbackClient()
  const limited = deadline(limit, signal)
  try {
    const { status, header, ...response } = await client.open(url, request, { signal: limited })
    const proof = header(PROOF_HEADER)
    // Checked before the body is read, since another program may send one without an end.
    if (proof === undefined) throw new Unproven(record)
    const text = await response.text()
    if (!sameProof(expected(status, text), proof)) throw new Unproven(record)
    const answer: object = JSON.parse(text)
    if (status === 200) return answer
    throw errorOf(answer) ?? new RelayError('internal', `relay answered ${status}`)
  } catch (error) {
    throw limited.aborted ? limited.reason : error
  }
}

/** Changes at the instance, from opening the stream until it is disposed of. */
export interface ChangeStream extends Disposable {
  /**
   * Topics of the lines that have arrived; none at a heartbeat. Ends when the instance stops or hangs, and when the
   * signal aborts.
   */
  readonly lines: AsyncIterable<readonly Topic[]>
}

/** Longest line, far above any real one. Characters. */
const MAX_LINE = 65_536

/**
 * Opens the instance's stream of changes.
 * @param limit milliseconds until the head of the response
 * @throws as {@link askInstance}
 */
export async function openChanges(
  record: InstanceRecord,
  { limit, signal }: Cancellable & { readonly limit: number },
): Promise<ChangeStream> {
  const { url, request, expected } = requestOf(record, 'changes', {})
  const client = createLoopbackClient()
  const end = new AbortController()
  const close = (): void => {
    end.abort()
    client[Symbol.dispose]()
  }
  const late = setTimeout(() => end.abort(new DOMException('Timed out', 'TimeoutError')), limit)
  try {
    const ended = signal ? AbortSignal.any([signal, end.signal]) : end.signal
    const { status, header, body } = await client.open(url, request, { signal: ended })
    clearTimeout(late)
    if (!sameProof(expected(status, ''), header(PROOF_HEADER))) {
      // The proof of a failure covers its body, so it does not match here.
      throw status === 200 ? new Unproven(record) : new RelayError('unavailable', `relay answered ${status}`)
    }
    return { lines: linesOf(body, close), [Symbol.dispose]: close }
  } catch (error) {
    clearTimeout(late)
    const isLate = end.signal.aborted
    close()
    signal?.throwIfAborted()
    throw isLate ? end.signal.reason : error
  }
}

async function* linesOf(body: AsyncIterable<Buffer>, close: () => void): AsyncGenerator<readonly Topic[]> {
  const silent = setTimeout(close, SILENCE_MS)
  let rest = ''
  try {
    for await (const chunk of body) {
      silent.refresh()
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE) return
      if (lines.length > 0) yield lines.flatMap((line) => changedIn(line))
    }
  } catch {
    // The connection broke, or the instance hangs. The caller looks for it again.
  } finally {
    clearTimeout(silent)
    close()
  }
}

function changedIn(line: string): readonly Topic[] {
  const { changed }: ChangeLine = JSON.parse(line)
  return changed
}

/** Makes the error of a call without a complete response. It says if the request may have been carried out. */
export function lostCall({ url }: InstanceRecord, cause: unknown): RelayError {
  const why = describeWithoutQuote(cause)
  const what =
    cause instanceof SyntaxError ? 'an answer that is not understood' : `no complete answer (${why})`
  const perhaps = 'the request may have been carried out all the same'
  const text = isUnreached(cause) ? `cannot be reached (${why})` : `gave ${what}; ${perhaps}`
  return new RelayError('unavailable', `relay at ${url} ${text}`, { cause })
}
