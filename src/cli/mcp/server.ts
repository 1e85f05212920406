import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import packageJson from '../../../package.json' with { type: 'json' }
import { type ErrorKind, toRelayError } from '../../base/errors.js'
import { printableJson, printableText } from '../../base/text.js'
import { fieldsOf } from '../../json/parse.js'
import { type Shell, shellWith } from '../command.js'
import { Outside, Own } from '../output/outside.js'
import { openProfile } from '../profile.js'
import { type Note, noteFrom } from './notes.js'
import { FROM_OUTSIDE, ownObject, separated } from './own-object.js'
import { type Call, Failed, type ToolFields, type Tools } from './tool.js'
import { INSTRUCTIONS } from './tools.js'

/** Interval of progress messages, and of checks that relay still runs. Milliseconds. */
const PROGRESS_MS = 2000

/** Makes the MCP server. A failure of a tool's command is a result with advice. */
export function createServer(tools: Tools, shell: Shell, needRelay: () => Promise<void>): McpServer {
  const about = { name: 'relay', version: packageJson.version }
  const server = new McpServer(about, { instructions: INSTRUCTIONS })
  for (const [name, tool] of Object.entries(tools)) {
    const { does: description, kind, input: inputSchema, output, run } = tool
    const needsRelay = kind === 'waits' || kind === 'sends'
    const notes = z.array(z.string()).describe('messages of relay')
    const outputSchema = ownObject(output).extend({ notes })
    const annotations = { readOnlyHint: !kind || kind === 'waits', destructiveHint: kind === 'acts' }
    const config = { description, inputSchema, outputSchema, annotations }
    server.registerTool(name, config, async (given: ToolFields, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      const gone = new AbortController()
      const began = Date.now()
      const look = async (): Promise<void> => {
        const progress = Math.round((Date.now() - began) / 1000)
        const params = { progressToken, progress, message: `${name}: ${progress} s` }
        // Not sent to a client that has gone.
        if (progressToken !== undefined)
          mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
        if (needsRelay && given['to'] === undefined && !given['list']) await needRelay()
      }
      const timer = setInterval(() => void look().catch((error: unknown) => gone.abort(error)), PROGRESS_MS)
      try {
        await look()
        const signal = AbortSignal.any([shell.signal, mcpReq.signal, gone.signal])
        const call: Call = { shell: shellWith(shell, { signal }), given, notes: new Set<Note>() }
        const made = withoutRest(await run(call))
        const structuredContent = withNotes(separated(ownObject(output), made), call.notes)
        return { content: [textOf(structuredContent)], structuredContent }
      } catch (error) {
        const isSignedOut = SIGNED_OUT.has(toRelayError(error).kind)
        return failureOf(error, isSignedOut ? [await signInText(shell)] : [])
      } finally {
        clearInterval(timer)
      }
    })
  }
  return server
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
function withNotes(result: ToolFields, all: Iterable<Note>): ToolFields {
  const notes: string[] = []
  const quoting: unknown[] = []
  for (const note of all)
    if (note instanceof Outside) quoting.push(note.value)
    else notes.push(note)
  if (quoting.length === 0) return { ...result, notes }
  return { ...result, notes, [FROM_OUTSIDE]: { ...fieldsOf(result[FROM_OUTSIDE]), notes: quoting } }
}

function textOf(content: object) {
  return { type: 'text' as const, text: printableJson(JSON.stringify(content)) }
}

/** Failures that only a sign-in resolves, whose messages may quote a code host. */
const SIGNED_OUT: ReadonlySet<ErrorKind> = new Set(['unauthenticated', 'invalid_token'])

/** Makes the advice about them, in relay's own words. @throws RelayError `settings` */
async function signInText(shell: Shell): Promise<string> {
  await using profile = await openProfile(shell, {}, { mustExist: false, instance: 'ignore' })
  return `Ask the user to sign in to this profile with ${profile.command('login')}, then call again`
}

/**
 * Makes the content of a tool error: its messages or, if one may quote the outside, an object with the kind of the
 * failure and that message marked.
 */
function failureOf(thrown: unknown, next: readonly string[]) {
  const { kind } = toRelayError(thrown)
  const before = thrown instanceof Failed ? thrown.notes : [noteFrom(thrown)]
  const all = [...before, ...next]
  const own = all.filter((one) => typeof one === 'string')
  const content =
    own.length === all.length
      ? { type: 'text' as const, text: printableText(own.join('\n')) }
      : textOf(withNotes({ error: kind }, all))
  return { content: [content], isError: true }
}
