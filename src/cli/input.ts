import { createReadStream } from 'node:fs'
import path from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { addAbortSignal, Writable } from 'node:stream'
import { decodeText, NotText } from '../base/decode.js'
import { errorReason, RelayError, isError } from '../base/errors.js'
import { readBounded, TooManyBytes } from '../base/bytes.js'
import type { Shell } from './command.js'
import type { Context } from './context.js'

/** Parses the value of a flag that is no setting. @throws RelayError `usage` that names the flag */
export function parseFlag<Value>(flag: string, text: string, parse: (text: string) => Value): Value {
  try {
    return parse(text)
  } catch (cause) {
    throw new RelayError('usage', `${flag}: ${isError(cause) ? cause.message : ''}`, { cause })
  }
}

/** Limit of an input in bytes, and its name in messages: `larger than 1 MiB`. */
interface InputOptions {
  readonly tooLarge: string
  readonly limit: number
  readonly name?: string
  /** Name of the input, for a person who has to type it. Default: `input`. */
  readonly what?: string
}

/**
 * Reads standard input (`-`), after saying so to a person who has to type it, or a file. @throws RelayError `too_large`; `usage` if it cannot be read; the signal's
 * AbortError
 */
export async function readInput(
  { stdin, cwd, signal, out }: Shell,
  file: string,
  { tooLarge, limit, name = file === '-' ? 'Standard input' : file, what = 'input' }: InputOptions,
): Promise<Buffer> {
  if (file === '-' && stdin.isTTY === true)
    out.say(`Reading ${what} from this terminal: Ctrl-D on an empty line ends it, Ctrl-C cancels`)
  const stream = file === '-' ? stdin : createReadStream(path.resolve(cwd, file))
  try {
    return await readBounded(addAbortSignal(signal, stream), limit)
  } catch (cause) {
    if (signal.aborted) throw cause
    if (cause instanceof TooManyBytes) throw new RelayError('too_large', `${name} is ${tooLarge}`)
    throw new RelayError('usage', `${name} cannot be read (${errorReason(cause)})`, { cause })
  }
}

/** Decodes an input. @throws RelayError `usage` that names it, for bytes that are no text or of unknown encoding */
export function inputText(bytes: Uint8Array, name: string): string {
  try {
    return decodeText(bytes)
  } catch (cause) {
    if (!(cause instanceof NotText)) throw cause
    throw new RelayError('usage', `${name} ${cause.message}`, { cause })
  }
}

/** Longest answer, in characters: the longest tokens have less than 1000. */
const MAX_ANSWER = 4096

export function canAsk({ stdin, stderr }: Context): boolean {
  return stdin.isTTY === true && stderr.isTTY === true
}

/** Asks the user in the terminal or, if standard input is no terminal, reads one line of it for each answer. */
export class Prompt implements Disposable {
  readonly #context: Context
  /** Reader of piped input. It reads ahead, so all answers share it. */
  #piped: Interface | undefined

  constructor(context: Context) {
    this.#context = context
  }

  /**
   * Asks for agreement. @throws RelayError `usage` without a terminal, with `how` to agree otherwise; `cancelled` at
   * Ctrl-C, and with what `remains` for a no
   */
  async agree(question: string, { how, remains }: { readonly how: string; readonly remains: string }) {
    if (!canAsk(this.#context)) throw new RelayError('usage', how)
    const answer = await this.#answer(`${question} [y/N] `, false)
    if (!/^y(es)?$/i.test(answer)) throw new RelayError('cancelled', remains)
  }

  /**
   * Asks for a text, and removes surrounding white space. With `hidden`, the terminal does not show what is typed.
   * @throws RelayError `cancelled` at Ctrl-C, `usage` for an answer that is too long, or empty unless it is `optional`
   */
  async text(
    question: string,
    { hidden = false, optional = false }: { readonly hidden?: boolean; readonly optional?: boolean } = {},
  ): Promise<string> {
    const answer = await this.#answer(`${question}: `, hidden)
    if (answer === '' && !optional) throw new RelayError('usage', `${question}: there is no answer`)
    if (answer.length <= MAX_ANSWER) return answer
    throw new RelayError('usage', `${question}: the answer is longer than ${MAX_ANSWER} characters`)
  }

  async #answer(question: string, hidden: boolean): Promise<string> {
    const { stderr, signal } = this.#context
    signal.throwIfAborted()
    if (!canAsk(this.#context)) return nextLine((this.#piped ??= this.#open(false)), signal)
    // Opened before the question, since the terminal shows typed text until then.
    const lines = this.#open(hidden)
    stderr.write(question)
    try {
      return await nextLine(lines, signal)
    } finally {
      lines.close()
      if (hidden) stderr.write('\n')
    }
  }

  #open(hidden: boolean): Interface {
    const { stdin, signal } = this.#context
    // In raw mode the terminal shows nothing by itself. Readline would show it on this stream.
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const output = hidden ? silent : undefined
    return createInterface({ input: stdin, output, terminal: hidden, historySize: 0, signal })
  }

  [Symbol.dispose](): void {
    this.#piped?.close()
  }
}

/**
 * Reads a line without surrounding white space. Empty at the end of the input. @throws RelayError `cancelled` at
 * Ctrl-C, `usage` for invalid text
 */
async function nextLine(lines: Interface, signal: AbortSignal): Promise<string> {
  // In raw mode Ctrl-C is no signal, and only ends the input.
  const interrupted = new AbortController()
  lines.once('SIGINT', () => {
    interrupted.abort(new RelayError('cancelled', 'Interrupted'))
    lines.close()
  })
  const { value = '' } = await lines[Symbol.asyncIterator]().next()
  AbortSignal.any([signal, interrupted.signal]).throwIfAborted()
  // Readline replaces bytes that are not UTF-8 with this character.
  if (/[\0\uFFFD]/.test(value)) throw new RelayError('usage', 'Standard input is not UTF-8. Save it as UTF-8')
  return value.trim()
}
