import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Context } from '../../src/cli/context.js'

/** A context whose streams are kept, in an empty folder and environment, with nothing on standard input. */
export function testContext(over: Partial<Context> = {}): {
  context: Context
  out: () => string
  err: () => string
} {
  const stdout = new Kept()
  const stderr = new Kept()
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
    ...over,
  }
  return { context, out: () => stdout.text, err: () => stderr.text }
}

/** A new folder of the test's own. */
export function emptyFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'test-'))
}

class Kept {
  text = ''
  write(text: string): void {
    this.text += text
  }
}
