import { Readable } from 'node:stream'
import type { Shell } from '../../src/cli/command.js'
import type { Context } from '../../src/cli/context.js'
import { Output, type OutputOptions } from '../../src/cli/output/output.js'
import { emptyFolder } from '../kit/folder.js'

interface Options extends Partial<Context>, OutputOptions {}

/** A shell whose streams are recorded, in an empty folder and environment, with nothing on standard input. */
export function testShell(options: Options = {}): {
  readonly shell: Shell
  readonly out: () => string
  readonly err: () => string
} {
  const [stdout, stderr] = [new Recorder(), new Recorder()]
  const context: Context = {
    env: {},
    cwd: emptyFolder(),
    configFolder: emptyFolder(),
    stdin: Readable.from([]),
    stdout,
    stderr,
    signal: new AbortController().signal,
    endAtSignal: () => {},
    onHangup: () => () => {},
    onKey: () => undefined,
    continueWithoutOutput: () => {},
    onConnectionError: () => () => {},
    ...options,
  }
  const shell = { ...context, out: new Output(context, options), json: options.json === true }
  return { shell, out: () => stdout.text, err: () => stderr.text }
}

class Recorder {
  text = ''
  write(text: string | Uint8Array): void {
    this.text += String(text)
  }
}

/** The kind and message of the RelayError that `run` throws. Fails when it throws nothing. */
export function failure(run: () => unknown): { kind: unknown; message: unknown } {
  try {
    run()
  } catch (error) {
    const { kind, message } = Object(error)
    return { kind, message }
  }
  throw new Error('it did not fail')
}
