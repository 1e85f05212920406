import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { errorReason, RelayError } from '../base/errors.js'
import { TooManyBytes } from '../base/bytes.js'
import type { Context } from './context.js'

export interface InputOptions {
  /** For messages: `Standard input`. */
  readonly name: string
  /** What an input beyond the limit is, for messages: `larger than 1 MiB`. */
  readonly tooLarge: string
  /** The signal that ends reading. */
  readonly signal: AbortSignal
}

/**
 * Runs `read`, which reads standard input or a file within a limit.
 * @throws RelayError `too_large` for `TooManyBytes`, `usage` for any other failure; the signal's AbortError
 */
export async function readInput<Result>(
  read: () => Promise<Result>,
  { name, tooLarge, signal }: InputOptions,
): Promise<Result> {
  try {
    return await read()
  } catch (cause) {
    if (signal.aborted) throw cause
    if (cause instanceof TooManyBytes) throw new RelayError('too_large', `${name} is ${tooLarge}`)
    throw new RelayError('usage', `${name} cannot be read (${errorReason(cause)})`, { cause })
  }
}

/** No answer is longer, in characters: the longest tokens have less than 1000. */
const MAX_ANSWER = 4096

/** Whether a person can be asked. */
export function canAsk({ stdin, stderr }: Pick<Context, 'stdin' | 'stderr'>): boolean {
  return stdin.isTTY === true && stderr.isTTY === true
}

/** Asks the user in the terminal or, if standard input is no terminal, reads one line of it for each answer. */
export class Prompt implements Disposable {
  readonly #context: Context
  /** Reads what is piped in. It reads ahead, so there is one for all answers. */
  #piped: { readonly lines: Interface; readonly answers: AsyncIterator<string> } | undefined

  constructor(context: Context) {
    this.#context = context
  }

  /** Whether the answer is yes. @throws RelayError `cancelled` at Ctrl-C */
  async confirm(question: string): Promise<boolean> {
    return /^y(es)?$/i.test(await this.#answer(`${question} [y/N] `, false))
  }

  /**
   * The answer, without white space around it. With `hidden`, the terminal does not show what is typed.
   * @throws RelayError `cancelled` at Ctrl-C, `usage` for an answer that is too long, or for none unless it is `optional`
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
    this.#context.signal.throwIfAborted()
    return (canAsk(this.#context) ? await this.#ask(question, hidden) : await this.#next()).trim()
  }

  async #ask(question: string, hidden: boolean): Promise<string> {
    const { stdin, stderr, signal } = this.#context
    stderr.write(question)
    // In raw mode the terminal shows nothing by itself, and Readline would show it on this stream.
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const lines = createInterface({
      input: stdin,
      output: hidden ? silent : undefined,
      terminal: hidden,
      historySize: 0,
    })
    try {
      return await firstLine(lines, signal)
    } finally {
      lines.close()
      if (hidden) stderr.write('\n')
    }
  }

  async #next(): Promise<string> {
    const { stdin, signal } = this.#context
    if (!this.#piped) {
      const lines = createInterface({ input: stdin, signal })
      this.#piped = { lines, answers: lines[Symbol.asyncIterator]() }
    }
    const { value, done } = await this.#piped.answers.next()
    signal.throwIfAborted()
    return done ? '' : value
  }

  [Symbol.dispose](): void {
    this.#piped?.lines.close()
  }
}

async function firstLine(lines: Interface, signal: AbortSignal): Promise<string> {
  let cancel = (): void => {}
  try {
    return await new Promise((resolve, reject) => {
      cancel = () => reject(new RelayError('cancelled', 'Interrupted'))
      signal.addEventListener('abort', cancel, { once: true })
      lines
        .once('line', resolve)
        .once('SIGINT', cancel)
        .once('close', () => resolve(''))
    })
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
