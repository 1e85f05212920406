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

/** By name: what a tool is given. */
export type ToolFields = Readonly<Record<string, unknown>>

/** A call of a tool. */
export interface Call {
  readonly shell: Shell
  readonly given: ToolFields
  /** What relay says besides the result. */
  readonly notes: Set<Note>
}

/** A command of which it is marked what of its results came from outside. */
type AgentCommand<Input extends Flags, R extends CommandResult> = RelayCommand<Input, R, MarkedProgrammatic>

/** A tool runs commands, and makes its result of theirs. What of that is relay's own, `output` says: all else is under one name. */
export interface Tool {
  readonly does: string
  /** What it does with the running relay: waits for it, or sends deliveries to it. Or that it acts on the code host. Default: it only reads. */
  readonly kind?: 'waits' | 'sends' | 'acts' | undefined
  readonly input: z.ZodObject
  readonly output: z.ZodRawShape
  readonly run: (call: Call) => Promise<object>
}
export type Tools = Readonly<Record<string, Tool>>

/** What a command gave: its values, and the objects that `--json` would print of them. */
export interface Found<R extends CommandResult> {
  readonly items: readonly ResultItem<R>[]
  readonly objects: readonly object[]
}

interface ToolSpec<Input extends Flags, R extends CommandResult, Args extends z.ZodRawShape> extends Pick<
  Tool,
  'does' | 'kind' | 'output'
> {
  readonly command: AgentCommand<Input, R>
  /** The options of the command that it takes as the declaration says. */
  readonly options?: readonly string[]
  /** What it takes besides. */
  readonly args: Args
  /** The input of the command besides those options. Default: nothing. */
  readonly input?: (given: z.infer<z.ZodObject<Args>>) => Partial<Input>
  /** It lists what is there: that there is nothing is no failure. */
  readonly isList?: true
  readonly result: (found: Found<R>, call: Call) => object | Promise<object>
}

/** A tool that runs one command first. */
export function tool<
  Input extends Flags,
  R extends CommandResult,
  Args extends z.ZodRawShape = z.ZodRawShape,
>(spec: ToolSpec<Input, R, Args>): Tool {
  const { does, kind, command, options = [], args, input = () => ({}), output, isList, result } = spec
  const own = z.object(args)
  return {
    does,
    kind,
    input: optionSchema(command, options).extend(own.shape),
    output,
    async run(call) {
      const chosen = Object.entries(call.given).filter(
        ([name, value]) => options.includes(name) && value !== false,
      )
      const further = input(own.parse(call.given))
      return result(
        await runForAgent(call, command, { ...Object.fromEntries(chosen), ...further }, isList),
        call,
      )
    },
  }
}

/** What a tool can be given for the options of its command. One with a parser, but without choices, can be repeated. */
function optionSchema(
  command: Pick<RelayCommand, 'options' | 'settings'>,
  names: readonly string[],
): z.ZodObject {
  const fields = optionsOf(command).map((spec): [string, z.ZodType] => {
    const option = toOption(spec)
    const { argChoices, parseArg, description } = option
    const one = argChoices ? z.enum(argChoices) : z.coerce.string()
    const value = option.isBoolean() ? z.boolean() : parseArg && !argChoices ? z.array(one) : one
    return [option.attributeName(), value.optional().describe(description.replaceAll('\u00a0', ' '))]
  })
  return z.object(Object.fromEntries(fields.filter(([name]) => names.includes(name))))
}

/** The input of a command, with the defaults of the options that are not given. */
function withDefaults<Input extends Flags, R extends CommandResult>(
  command: AgentCommand<Input, R>,
  given: Partial<Input>,
): Input
function withDefaults(command: Pick<RelayCommand, 'options' | 'settings'>, given: object): object {
  const options = optionsOf(command).map(toOption)
  const defaults = options.filter(({ defaultValue }) => defaultValue !== undefined)
  const values = defaults.map((option) => [option.attributeName(), option.defaultValue])
  return { ...Object.fromEntries(values), ...given }
}

/**
 * Runs a command for a call. Its messages are notes; so are a verdict on what it found, and that a list is empty.
 * @throws RelayError of the command, its messages with it
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
    for await (const item of itemsOf(command.run(shell, withDefaults(command, given)))) {
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

/** The failure of a command, with what it said before that. */
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
