import { Writable } from 'node:stream'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { SANDBOX_PROFILE } from '../../base/command-line.js'
import { RelayError } from '../../base/errors.js'
import { aborted } from '../../base/wait.js'
import { parseJson } from '../../json/parse.js'
import type { ServeItem } from '../commands/serve/items.js'
import { type Flags, type Shell, shellWith } from '../command.js'
import { notServed } from '../advice.js'
import { openProfile } from '../profile.js'
import { WholeLines } from './lines.js'
import { createServer } from './server.js'
import { type McpFlags, OwnRelay } from './own-relay.js'
import type { Call, Tool, Tools } from './tool.js'
import { ACTIONS, TOOLS } from './tools.js'

/** Settings of `--serve`'s relay only. */
const OF_SERVE = ['sandbox', 'port', 'sandboxPort', 'forward', 'exec', 'ignore', 'sources', 'tunnel'] as const

/**
 * Runs `relay mcp` until its input ends or a signal arrives. Standard input and output carry the protocol, and nothing
 * else. The stream yields the events of the relay of `--serve`, for standard error. @throws RelayError `usage`,
 * `too_large`
 */
export async function* runMcp(given: Shell, flags: McpFlags): AsyncGenerator<ServeItem, void> {
  const idle = OF_SERVE.find((name) => flags[name] !== undefined)
  if (idle !== undefined && !flags.serve) throw new RelayError('usage', `${flagOf(idle)}: only with --serve`)
  if (flags.allowProjectExec && !flags.serve)
    throw new RelayError('usage', '--allow-project-exec: only with --serve')
  const { stdin, signal, out } = given
  if (stdin.isTTY)
    out.say('Waiting for the client of an agent, which starts this command: see docs/agents.md')
  const ended = new AbortController()
  const own = shellWith(given, { signal: AbortSignal.any([signal, ended.signal]) })
  const relay = flags.serve ? new OwnRelay(own, flags) : undefined
  const serving = serveTools(own, flags, { relay, end: (reason) => ended.abort(reason) })
  // Thrown below, once the relay has ended.
  serving.catch(() => {})
  given.continueWithoutOutput(() => ended.abort())
  let isRead = false
  try {
    if (relay) yield* relay.run()
    isRead = true
  } finally {
    // A reader that leaves ends the tools, too.
    if (!isRead) ended.abort()
    await serving
  }
}

/** The settings among the flags. */
function settingsOf(flags: McpFlags): Flags {
  const {
    profile = flags.sandbox ? SANDBOX_PROFILE : undefined,
    serve = false,
    allowProjectExec = false,
  } = flags
  const given = OF_SERVE.flatMap((name) => (name === 'sandbox' ? [] : [[name, flags[name]] as const]))
  const named = [['profile', profile] as const, ...given].filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(named), projectExec: !serve || allowProjectExec }
}

function flagOf(name: (typeof OF_SERVE)[number]): string {
  return name === 'sources' ? '--source' : name === 'sandboxPort' ? '--sandbox-port' : `--${name}`
}

/** Serves the tools until the client leaves or the signal aborts. @throws RelayError `too_large` */
async function serveTools(
  shell: Shell,
  flags: McpFlags,
  { relay, end }: { readonly relay: OwnRelay | undefined; readonly end: (reason?: RelayError) => void },
): Promise<void> {
  const { stdin, stdout, out, signal } = shell
  const settings = settingsOf(flags)
  /** Starts the relay of `--serve` if none runs, and returns what to say of that. @throws RelayError of its start */
  const startRelay = async (): Promise<string | undefined> => ((await relay?.ready()) ? STARTED : undefined)
  /** Checks that a relay runs. @throws RelayError with the command to run if none does */
  const needRelay = async (): Promise<void> => {
    await startRelay()
    await using profile = await openProfile(shell, settings)
    if (!profile.instance)
      throw notServed(profile, `. ${profile.command('mcp --serve')} starts one, at its own start`)
  }
  const noteRelay = async ({ notes }: Call): Promise<void> => {
    if (!relay) return
    const warnings = [relay.leftOut(), relay.unused()].map((each) => each.catch(() => undefined))
    for (const text of await Promise.all(warnings)) if (text !== undefined) notes.add(text)
  }
  const tools = {
    ...TOOLS,
    ...noted(['show_routes', 'relay_state'], noteRelay),
    ...(flags.allowActions && ACTIONS),
  }
  const output = new Writable({ write: (chunk, _, done) => done(void stdout.write(chunk)) })
  const lines = new WholeLines(MAX_MESSAGE, (line) => {
    const isMessage = isJson(line)
    if (!isMessage && line.toString().trim() !== '') output.write(PARSE_ERROR)
    return isMessage
  })
  stdin.on('error', (error: Error) => lines.destroy(error)).on('close', () => lines.end())
  if (stdin.destroyed) lines.end()
  const transport = new StdioServerTransport(stdin.pipe(lines), output, { maxBufferSize: MAX_MESSAGE })
  const onerror = (error: Error): void => out.log.debug(error.message)
  const handle = serveStdio(() => createServer(tools, shell, { flags: settings, startRelay, needRelay }), {
    transport,
    onerror,
  })
  const { onclose } = transport
  const onEnd = (): void => {
    onclose?.()
    end(lines.readableEnded || lines.destroyed ? undefined : TOO_LONG)
  }
  Object.assign(transport, { onclose: onEnd })
  await aborted(signal)
  await handle.close()
  stdin.unpipe(lines).pause()
  if (signal.reason === TOO_LONG) throw TOO_LONG
}

function isJson(line: Buffer): boolean {
  try {
    parseJson(line)
    return true
  } catch {
    return false
  }
}

/** Said by the call that has started the relay of `--serve` after the client's start. */
const STARTED = 'No relay was running: this call has started one, as the client is set up'

/** Answer to a line that is not JSON, whose id cannot be known. @see JSON-RPC 2.0 section 5.1 */
const PARSE_ERROR = `${JSON.stringify({
  jsonrpc: '2.0',
  id: null,
  error: { code: -32_700, message: 'Parse error: a message is one line of JSON' },
})}\n`

/** Longest message, and other bytes read with it: a body of 15 MiB, and more than an agent writes. Bytes. */
const MAX_MESSAGE = 16 * 2 ** 20
// Not answered, since its id is not read.
const TOO_LONG = new RelayError('too_large', 'The client has sent a message of more than 16 MiB')

/** Adds a note to the results of some tools. */
function noted(names: readonly string[], note: (call: Call) => Promise<void>): Tools {
  const chosen = Object.entries(TOOLS).filter(([name]) => names.includes(name))
  const run = (tool: Tool) => async (call: Call) => {
    await note(call)
    return tool.run(call)
  }
  return Object.fromEntries(chosen.map(([name, tool]) => [name, { ...tool, run: run(tool) }]))
}
