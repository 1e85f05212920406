import { RelayError, toRelayError } from '../../../base/errors.js'
import { type Shell, shellWith } from '../../command.js'
import { COMMANDS, optionsOf } from '../../help.js'
import { toOption } from '../../main.js'
import { Output } from '../../output/output.js'

export type Fields = Readonly<Record<string, unknown>>

/** What a command printed, and its messages. */
export interface Heard {
  readonly objects: readonly Fields[]
  readonly notes: readonly string[]
}

/** A command such as `log` or `routes test`, and its options by the names of their values. */
export function commandOf(line: string) {
  const [name = '', sub] = line.split(' ')
  const spec = sub === undefined ? COMMANDS[name] : COMMANDS[name]?.subcommands?.[sub]
  if (!spec?.load) throw new Error(`unreachable: there is no command ${line}`)
  const options = optionsOf(spec).map(toOption)
  return { load: spec.load, options: new Map(options.map((option) => [option.attributeName(), option])) }
}

/** Failures that judge what was printed. */
const VERDICTS = new Set(['target_failed', 'invalid_signature'])

/**
 * Runs a command as `--json` does, without the streams of the process. A verdict on what it printed is a note, and so is that a list is
 * empty.
 * @throws RelayError of the command, its messages with it
 */
export async function hear(shell: Shell, line: string, flags: Fields, ...args: unknown[]): Promise<Heard> {
  const { load, options } = commandOf(line)
  const defaults = Object.fromEntries([...options].map(([name, { defaultValue }]) => [name, defaultValue]))
  const printed: string[] = []
  const said: string[] = []
  const stdout = { write: (text: string | Uint8Array) => printed.push(String(text)) }
  const stderr = { write: (text: string | Uint8Array) => said.push(String(text)) }
  const out = new Output({ stdout, stderr, env: shell.env }, { color: 'never' })
  const lines = (texts: readonly string[]): string[] => texts.join('').split('\n').filter(Boolean)
  try {
    const run = await load()
    await run(shellWith(shell, { stdout, stderr, out, json: true }), { ...defaults, ...flags }, ...args)
  } catch (thrown) {
    const error = toRelayError(thrown)
    const { kind, message } = error
    const isNote = printed.length > 0 ? VERDICTS.has(kind) : kind === 'no_match' && line === 'log'
    if (!isNote) throw new RelayError(kind, [...lines(said), message].join('\n'), { cause: error })
    said.push(message)
  }
  return { objects: lines(printed).map((text): Fields => JSON.parse(text)), notes: lines(said) }
}
