import { McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import packageJson from '../../../package.json' with { type: 'json' }
import { type ErrorKind, toRelayError } from '../../base/errors.js'
import { hostSource, PROVIDER_NAMES } from '../../base/source-names.js'
import { printableJson, printableText } from '../../base/text.js'
import { fieldsOf } from '../../json/parse.js'
import { type Flags, type Shell, shellWith } from '../command.js'
import { Outside, Own } from '../output/outside.js'
import { openProfile } from '../profile.js'
import { argumentsSchema, readArguments } from './arguments.js'
import { offerLibrary } from './library.js'
import { type Note, noteFrom } from './notes.js'
import { FROM_OUTSIDE, ownObject, separated } from './own-object.js'
import { type Call, Failed, type Tool, type ToolFields, type Tools } from './tool.js'
import { INSTRUCTIONS } from './tools.js'
import { noteForAgent } from './wording.js'

/** Interval of progress messages, and of checks that relay still runs. Milliseconds. */
const PROGRESS_MS = 2000

interface ServerParts {
  /** Settings of the arguments of `relay mcp`. */
  readonly flags: Flags
  /** Starts the relay of `--serve` if none runs, and says so if this call did. @throws RelayError of its start */
  readonly startRelay: () => Promise<Note | undefined>
  /** Checks that a relay runs. @throws RelayError with what to do if none does */
  readonly needRelay: () => Promise<void>
}

/** Makes the MCP server. A failure of a tool's command is a result with advice. */
export function createServer(
  tools: Tools,
  shell: Shell,
  { flags, startRelay, needRelay }: ServerParts,
): McpServer {
  const about = { name: 'relay', version: packageJson.version }
  const server = new McpServer(about, { instructions: INSTRUCTIONS })
  for (const [name, tool] of Object.entries(tools)) {
    const { kind, input, output, run } = tool
    const needsRelay = kind === 'waits' || kind === 'sends'
    const names = Object.keys(input.shape)
    server.registerTool(name, configOf(tool), async (raw, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      const gone = new AbortController()
      let given: ToolFields = {}
      const began = Date.now()
      const look = async (): Promise<void> => {
        const progress = Math.round((Date.now() - began) / 1000)
        const params = { progressToken, progress, message: `${name}: ${progress} s` }
        // Not sent to a client that has gone.
        if (progressToken !== undefined)
          mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
        if (isRelayNeeded()) await needRelay()
      }
      const isRelayNeeded = (): boolean => needsRelay && given['to'] === undefined && given['list'] !== true
      // A tool that needs no relay answers without it, and says why there is none.
      const trouble = (error: unknown): Note => {
        if (isRelayNeeded()) throw error
        return noteFrom(error)
      }
      let known: readonly Note[] = []
      let timer: NodeJS.Timeout | undefined
      try {
        given = readArguments(name, tool, raw)
        known = [(await startRelay().catch(trouble)) ?? []].flat()
        timer = setInterval(() => void look().catch((error: unknown) => gone.abort(error)), PROGRESS_MS)
        await look()
        const signal = AbortSignal.any([shell.signal, mcpReq.signal, gone.signal])
        const parts = { shell: shellWith(shell, { signal }), flags, given }
        const call: Call = { ...parts, notes: new Set<Note>(known) }
        const made = withoutRest(await run(call))
        const structuredContent = withNotes(separated(ownObject(output), made), call.notes, names)
        return { content: [textOf(structuredContent)], structuredContent }
      } catch (error) {
        const isSignedOut = SIGNED_OUT.has(toRelayError(error).kind)
        const next = isSignedOut ? [...known, await signInText(shell, flags)] : known
        return failureOf(error, next, names)
      } finally {
        clearInterval(timer)
      }
    })
  }
  offerLibrary(server, () => hostOf(shell, flags))
  return server
}

/** The source of the profile's code host. What is wrong with the settings is no reason to list nothing. */
async function hostOf(shell: Shell, flags: Flags): Promise<string> {
  try {
    await using profile = await openProfile(shell, flags, { mustExist: false, instance: 'ignore' })
    return hostSource(profile.values.provider)
  } catch {
    return hostSource(PROVIDER_NAMES[0])
  }
}

/** Entry of a tool in the list. */
function configOf({ title, does: description, kind, isRepeatable, input }: Tool) {
  const readOnlyHint = !kind || kind === 'waits'
  const annotations = {
    readOnlyHint,
    destructiveHint: kind === 'acts',
    idempotentHint: isRepeatable ?? readOnlyHint,
    openWorldHint: kind === 'acts',
  }
  const inputSchema = listed(argumentsSchema(input))
  return { title, description, inputSchema, outputSchema: listed(RESULT), annotations }
}

/**
 * Schema of every result in the list of tools. A client shows all schemas to its model at each start; what relay itself
 * guarantees is in `output` of a tool.
 */
const RESULT = {
  type: 'object',
  properties: { notes: { type: 'array', items: { type: 'string' } } },
  required: ['notes'],
}

/** A schema for the list of tools only: {@link readArguments} reads the arguments. */
function listed(schema: object): StandardSchemaWithJSON<unknown, unknown> {
  const json = (): Record<string, unknown> => ({ ...schema })
  const validate = (value: unknown): { value: unknown } => ({ value })
  return { '~standard': { version: 1, vendor: 'relay', validate, jsonSchema: { input: json, output: json } } }
}

/** Fields that repeat other parts of a result, such as `payload`, which is the body. */
const LEFT_OUT: ReadonlySet<string> = new Set(['v', 'type', 'payload', 'bodyBase64', 'expected'])

/** Removes {@link LEFT_OUT} at any depth, except in objects from outside. */
function withoutRest(object: object): ToolFields {
  const rest = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(rest) : isPlain(value) ? withoutRest(value) : value
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => (LEFT_OUT.has(name) ? [] : [[name, rest(value)]])),
  )
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Outside || value instanceof Own)
}

/** Adds relay's messages to a result. Those that quote the outside go there. */
function withNotes(result: ToolFields, all: Iterable<Note>, names: readonly string[]): ToolFields {
  const notes: string[] = []
  const quoting: unknown[] = []
  for (const note of said(all, names))
    if (note instanceof Outside) quoting.push(note.value)
    else notes.push(note)
  if (quoting.length === 0) return { ...result, notes }
  return { ...result, notes, [FROM_OUTSIDE]: { ...fieldsOf(result[FROM_OUTSIDE]), notes: quoting } }
}

/** Rewrites messages for a call with these arguments, each once: the start of relay may fail for what the call fails for. */
function said(notes: Iterable<Note>, names: readonly string[]): readonly Note[] {
  const rewritten = [...notes].map((each) => noteForAgent(each, names))
  return [...new Map(rewritten.map((each) => [each instanceof Outside ? each.value : each, each])).values()]
}

function textOf(content: object) {
  return { type: 'text' as const, text: printableJson(JSON.stringify(content)) }
}

/** Failures that only a sign-in resolves, whose messages may quote a code host. */
const SIGNED_OUT: ReadonlySet<ErrorKind> = new Set(['unauthenticated', 'invalid_token'])

/** Makes the advice about them, in relay's own words. @throws RelayError `settings` */
async function signInText(shell: Shell, flags: Flags): Promise<string> {
  await using profile = await openProfile(shell, flags, { mustExist: false, instance: 'ignore' })
  return `Ask the user to sign in to this profile with ${profile.command('login')}, then call again`
}

/**
 * Makes the content of a tool error: its messages or, if one may quote the outside, an object with the kind of the
 * failure and that message marked.
 */
function failureOf(thrown: unknown, next: readonly Note[], names: readonly string[]) {
  const { kind } = toRelayError(thrown)
  const before = thrown instanceof Failed ? thrown.notes : [noteFrom(thrown)]
  const all = said([...before, ...next], names)
  const own = all.filter((one) => typeof one === 'string')
  const content =
    own.length === all.length
      ? { type: 'text' as const, text: printableText(own.join('\n')) }
      : textOf(withNotes({ error: kind }, all, names))
  return { content: [content], isError: true }
}
