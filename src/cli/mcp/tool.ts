import { Readable } from 'node:stream'
import { z } from 'zod'
import { RelayError, toRelayError } from '../../base/errors.js'
import {
  type RelayCommand,
  type Flags,
  type ResultItem,
  itemsOf,
  type MarkedProgrammatic,
  type CommandResult,
  type Shell,
  shellWith,
} from '../command.js'
import { optionsOf } from '../help.js'
import { toOption } from '../option.js'
import { Notes, type Note, noteFrom } from './notes.js'

/** Arguments of a tool, by name. */
export type ToolFields = Readonly<Record<string, unknown>>

/** Arguments that a given one excludes, by its name: they would say nothing. */
export type Excluded = Readonly<Record<string, readonly string[]>>

/** A call of a tool. */
export interface Call {
  readonly shell: Shell
  /** Settings of the arguments of `relay mcp`. */
  readonly flags: Flags
  readonly given: ToolFields
  /** Messages of relay in addition to the result. */
  readonly notes: Set<Note>
}

/** A command whose results mark the text from outside. */
type AgentCommand<Input extends Flags, R extends CommandResult> = RelayCommand<Input, R, MarkedProgrammatic>

/**
 * A tool. It runs commands, and makes its result from theirs. `output` describes relay's own part; everything else goes
 * under one name.
 */
export interface Tool {
  /** Name for a person. */
  readonly title: string
  readonly does: string
  /**
   * Use of the running relay: waits for it, or sends deliveries to it. `acts` writes to the code host. Default: only
   * reads.
   */
  readonly kind?: 'waits' | 'sends' | 'acts' | undefined
  /** True if a repeated call changes nothing more. Default: true for a tool that only reads or waits. */
  readonly isRepeatable?: boolean | undefined
  readonly input: z.ZodObject
  readonly excluded?: Excluded | undefined
  readonly output: z.ZodRawShape
  readonly run: (call: Call) => Promise<object>
}
export type Tools = Readonly<Record<string, Tool>>

/** Result of a command: its values, and the objects that `--json` would print. */
export interface Found<R extends CommandResult> {
  readonly items: readonly ResultItem<R>[]
  readonly objects: readonly object[]
}

interface ToolSpec<Input extends Flags, R extends CommandResult, Args extends z.ZodRawShape> extends Pick<
  Tool,
  'title' | 'does' | 'kind' | 'isRepeatable' | 'excluded' | 'output'
> {
  readonly command: AgentCommand<Input, R>
  /** Options of the command that the tool offers, as declared. */
  readonly options?: readonly string[]
  /** Further arguments. */
  readonly args: Args
  /** Makes the further input of the command. Default: none. */
  readonly input?: (given: z.infer<z.ZodObject<Args>>) => Partial<Input>
  /** Checks the arguments further while the command runs. Wrong arguments end the command. */
  readonly check?: (call: Call) => Promise<void>
  readonly result: (found: Found<R>, call: Call) => object | Promise<object>
}

/** Makes a tool that runs one command first. */
export function tool<
  Input extends Flags,
  R extends CommandResult,
  Args extends z.ZodRawShape = z.ZodRawShape,
>(spec: ToolSpec<Input, R, Args>): Tool {
  const { command, options = [], args, input = () => ({}), check, result, ...about } = spec
  const own = z.object(args)
  return {
    ...about,
    input: optionSchema(command, options).extend(own.shape),
    async run(call) {
      const further = input(own.parse(call.given))
      // A wait begins at once, or it would miss what comes meanwhile.
      const wrong = new AbortController()
      const checking = check?.(call).catch((error: unknown) => wrong.abort(error))
      const signal = AbortSignal.any([call.shell.signal, wrong.signal])
      const flags = { ...chosenOptions(call.given, options), ...further }
      const shell = shellWith(call.shell, { signal })
      const found = await runForAgent({ ...call, shell }, command, flags).catch(async (error: unknown) => {
        // An error about the arguments says more than one about their effect.
        await checking
        throw wrong.signal.aborted ? wrong.signal.reason : error
      })
      await checking
      wrong.signal.throwIfAborted()
      return result(found, call)
    },
  }
}

/** The options of a command that a call gives. */
export function chosenOptions(given: ToolFields, options: readonly string[]): object {
  const chosen = Object.entries(given).filter(([name, value]) => options.includes(name) && value !== false)
  return Object.fromEntries(chosen)
}

/** Makes the schema of options. One with a parser, but without choices, can be repeated. */
export function optionSchema(command: RelayCommand, names: readonly string[]): z.ZodObject {
  const fields = optionsOf(command).map((spec): [string, z.ZodType] => {
    const option = toOption(spec)
    const { argChoices, parseArg, description } = option
    const one = argChoices ? z.enum(argChoices) : z.string()
    const value = option.isBoolean() ? z.boolean() : parseArg && !argChoices ? z.array(one) : one
    return [option.attributeName(), value.optional().describe(description.replaceAll('\u00a0', ' '))]
  })
  return z.object(Object.fromEntries(fields.filter(([name]) => names.includes(name))))
}

/** Makes the input of a command, with the defaults of missing options. */
function withDefaults<Input extends Flags, R extends CommandResult>(
  command: AgentCommand<Input, R>,
  given: Partial<Input>,
): Input
function withDefaults(command: RelayCommand, given: object): object {
  const options = optionsOf(command).map(toOption)
  const defaults = options.filter(({ defaultValue }) => defaultValue !== undefined)
  const values = defaults.map((option) => [option.attributeName(), option.defaultValue])
  return { ...Object.fromEntries(values), ...given }
}

/**
 * Runs a command for a call. Its messages, its verdict and a note about an empty list become notes.
 * @throws RelayError of the command, with its messages
 */
export async function runForAgent<Input extends Flags, R extends CommandResult>(
  call: Call,
  command: AgentCommand<Input, R>,
  given: Partial<Input>,
  isList = false,
): Promise<Found<R>> {
  const notes = new Notes()
  // A body is standard input, and never the name of a file.
  const { body = '' } = call.given
  const stdin = Readable.from([Buffer.from(String(body))])
  const shell = shellWith(call.shell, { out: notes, json: true, stdin })
  const items: ResultItem<R>[] = []
  const objects: object[] = []
  try {
    for await (const item of itemsOf(
      command.run(shell, withDefaults(command, { ...call.flags, ...given })),
    )) {
      items.push(item)
      for (const part of [command.json?.(item)].flat())
        if (typeof part === 'object' && !(part instanceof Uint8Array))
          objects.push({ ...part, ...notes.members })
    }
  } catch (thrown) {
    const failure = toRelayError(thrown)
    const isVerdict = failure.kind === 'target_failed' || failure.kind === 'invalid_signature'
    const isNote = items.length > 0 ? isVerdict : failure.kind === 'no_match' && isList
    notes.list.push(noteFrom(failure))
    if (!isNote) throw new Failed(failure, notes.list)
  }
  for (const note of notes.list) call.notes.add(note)
  return { items, objects }
}

/** Failure of a command, with its messages so far. */
export class Failed extends RelayError {
  readonly notes: readonly Note[]

  constructor(failure: RelayError, notes: readonly Note[]) {
    super(failure.kind, failure.message, { cause: failure })
    this.notes = notes
  }
}

/** Adds the message of an error to the notes of a call. */
export function addError({ notes }: Call, thrown: unknown): void {
  for (const note of thrown instanceof Failed ? thrown.notes : [noteFrom(thrown)]) notes.add(note)
}
