import type { Context, TextStream } from './context.js'

/**
 * Gathers what goes to stdout in one turn of the event loop into one write, since a write to a pipe or a terminal waits for
 * the system, which with a line for each of thousands of deliveries adds up. Text for stderr is written at once, after what
 * came before it.
 */
export function gathered(
  stdout: TextStream,
  stderr: TextStream,
): Readonly<Pick<Context, 'stdout' | 'stderr'>> {
  let pending = ''
  const flush = (): void => {
    const text = pending
    pending = ''
    if (text !== '') stdout.write(text)
  }
  const gather = (text: string): void => {
    if (pending === '') setImmediate(flush)
    pending += text
  }
  return {
    stdout: like(stdout, (text) => {
      if (typeof text === 'string') return gather(text)
      flush()
      stdout.write(text)
    }),
    stderr: like(stderr, (text) => {
      flush()
      stderr.write(text)
    }),
  }
}

function like(stream: TextStream, write: TextStream['write']): TextStream {
  return {
    get isTTY() {
      return stream.isTTY
    },
    // A terminal's width may change.
    get columns() {
      return stream.columns
    },
    write,
  }
}
