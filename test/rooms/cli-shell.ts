import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Flags, Shell } from '../../src/cli/command.js'
import type { Context } from '../../src/cli/context.js'
import { Output, type OutputOptions } from '../../src/cli/output/output.js'
import { type LoadedSettings, openSettings } from '../../src/cli/settings/read.js'
import { emptyFolder } from '../kit/folder.js'

interface Options extends Partial<Context>, OutputOptions {}

/** A shell whose streams are recorded, in an empty folder and environment, with nothing on standard input. */
export function testShell(options: Options = {}): {
  readonly shell: Shell & { readonly out: Output }
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

/** Where settings are set: by flags, in the environment, and in files of the working folder and the user. */
export interface Given {
  readonly flags?: Flags
  readonly env?: Record<string, string>
  readonly dotenv?: string | readonly string[]
  readonly project?: unknown
  readonly user?: unknown
}

/** The settings that a command has there, and the warnings about them. */
export async function load(
  { flags = {}, env = {}, dotenv, project, user }: Given,
  { cwd = emptyFolder(), configFolder = emptyFolder() }: Partial<Pick<Context, 'cwd' | 'configFolder'>> = {},
): Promise<LoadedSettings & { readonly warnings: readonly string[] }> {
  if (dotenv !== undefined) writeFileSync(path.join(cwd, '.env'), [dotenv].flat().join('\n'))
  if (project !== undefined) writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify(project))
  if (user !== undefined) writeFileSync(path.join(configFolder, 'config.json'), JSON.stringify(user))
  const { shell, err } = testShell({ env, cwd, configFolder })
  const settings = await openSettings(shell, flags)
  const loaded = await settings.read()
  const warnings = err()
    .split('\n')
    .flatMap((line) => (line === '' ? [] : line.replace(/^warning: /, '')))
  return { ...loaded, warnings }
}

/** The same of what `run` rejects with. */
export async function rejection(run: () => Promise<unknown>): Promise<{ kind: unknown; message: unknown }> {
  try {
    await run()
  } catch (error) {
    const { kind, message } = Object(error)
    return { kind, message }
  }
  throw new Error('it did not fail')
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
