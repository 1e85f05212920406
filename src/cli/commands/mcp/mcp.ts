import { Readable, Writable } from 'node:stream'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import packageJson from '../../../../package.json' with { type: 'json' }
import { RelayError, toRelayError } from '../../../base/errors.js'
import { printableJson } from '../../../base/text.js'
import { aborted } from '../../../base/wait.js'
import { type Flags, type Shell, shellWith } from '../../command.js'
import { COMMANDS, optionsOf, RELAY } from '../../help.js'
import { Output } from '../../output/output.js'
import { attach, notServed, SANDBOX_PROFILE } from '../../profile.js'
import { runServe } from '../serve/serve.js'
import { ACTIONS, type Fields, hyphenated, INSTRUCTIONS, type Tool, TOOLS } from './tools.js'

/** What only the relay of `--serve` takes. */
const OF_SERVE = ['sandbox', 'port', 'forward', 'exec', 'ignore', 'sources', 'tunnel'] as const

/** Runs `relay mcp`, until its input ends or a signal comes. Standard output carries the protocol alone. @throws RelayError `usage` */
export async function runMcp(
  given: Shell,
  flags: Flags & { readonly serve?: boolean; readonly allowActions?: boolean },
): Promise<void> {
  const idle = OF_SERVE.find((name) => flags[name] !== undefined)
  if (idle !== undefined && !flags.serve)
    throw new RelayError('usage', `--${idle.replace('sources', 'source')}: only with --serve`)
  const { stdin, stdout, stderr, env, signal } = given
  if (stdin.isTTY)
    given.out.say('Waiting for the client of an agent, which starts this command: see docs/agents.md')
  const ended = new AbortController()
  const shell = shellWith(given, {
    out: new Output({ stdout: stderr, stderr, env }, flags),
    stdin: Readable.from([]),
    signal: AbortSignal.any([signal, ended.signal]),
  })
  const profile = flags.profile ?? (flags.sandbox ? SANDBOX_PROFILE : undefined)
  const common = profile === undefined ? {} : { profile }
  let onServing = (): void => {}
  const serving = new Promise<void>((resolve) => (onServing = resolve))
  const served = flags.serve ? serveIfNone(shell, { ...flags, onServing }) : Promise.resolve()
  // Why it could not start is said by the tools that need it.
  const started = Promise.race([serving, served])
  started.catch(() => {})
  /** @throws RelayError that says what to run where no relay runs */
  const needRelay = async (): Promise<void> => {
    await started
    const attached = await attach(shell, common)
    if (!attached.instance) throw notServed(attached, '. relay mcp --serve starts one, at its own start')
  }
  const createServer = (): McpServer => {
    const about = { name: 'relay', version: packageJson.version }
    const server = new McpServer(about, { instructions: INSTRUCTIONS })
    for (const [name, tool] of Object.entries({ ...TOOLS, ...(flags.allowActions && ACTIONS) }))
      addTool(server, name, tool, { shell, flags: common, needRelay })
    return server
  }
  const output = new Writable({ write: (chunk, _, done) => done(void stdout.write(chunk)) })
  // Beyond its limit it would read nothing more, and say nothing.
  const transport = new StdioServerTransport(stdin, output, { maxBufferSize: Infinity })
  const handle = serveStdio(createServer, {
    transport,
    onerror: (error) => shell.out.log.debug(error.message),
  })
  for (const event of ['end', 'close']) stdin.once(event, () => ended.abort(CLIENT_GONE))
  await aborted(shell.signal)
  await handle.close()
  await served.catch(() => {})
}

const CLIENT_GONE = new RelayError('cancelled', 'The client has gone')
/** Between two messages about a call, and looks whether relay still runs. Milliseconds. */
const PROGRESS_MS = 2000

/** A failure of the tool's command is a result that says what to do. */
function addTool(
  server: McpServer,
  name: string,
  { does: description, kind, command, options = [], args = {}, output, needsRelay, run }: Tool,
  { shell, flags, needRelay }: { shell: Shell; flags: Fields; needRelay: () => Promise<void> },
): void {
  const choices = z.object(Object.fromEntries(options.map((option) => [option, schemaOf(command, option)])))
  const config = {
    description,
    inputSchema: choices.extend(args),
    outputSchema: z.looseObject({ ...output, notes: z.array(z.string()).describe('messages of relay') }),
    annotations: { readOnlyHint: kind === undefined, destructiveHint: kind === 'acts' },
  }
  server.registerTool(name, config, async (given, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    const gone = new AbortController()
    const began = performance.now()
    const look = async (): Promise<void> => {
      const progress = Math.round((performance.now() - began) / 1000)
      const params = { progressToken, progress, message: `${name}: ${progress} s` }
      // Nothing reads it once the client has gone.
      if (progressToken !== undefined)
        mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
      if (needsRelay && given['to'] === undefined && !given['list']) await needRelay()
    }
    const timer = setInterval(() => void look().catch((error: unknown) => gone.abort(error)), PROGRESS_MS)
    try {
      await look()
      const signal = AbortSignal.any([shell.signal, mcpReq.signal, gone.signal])
      const result = await run(shellWith(shell, { signal }), { ...flags, ...choices.parse(given) }, given)
      return { content: contentOf(printableJson(JSON.stringify(result))), structuredContent: result }
    } catch (error) {
      return { content: contentOf(toRelayError(error).message), isError: true }
    } finally {
      clearInterval(timer)
    }
  })
}

const contentOf = (text: string) => [{ type: 'text' as const, text }]

/** What a tool can be given for a flag of its command. */
function schemaOf(command: string, name: string): z.ZodType {
  const all = optionsOf(COMMANDS[command] ?? RELAY)
  const [flag = '', help = '', { choices, repeatable } = {}] =
    all.find(([each]) => each.split(' ').includes(`--${hyphenated(name)}`)) ?? []
  const text = z.coerce.string()
  const value = choices ? z.enum(choices) : repeatable ? z.array(text) : text
  return (flag.includes('<') ? value : z.boolean()).optional().describe(help)
}

/** Serves unless a relay runs. @throws RelayError that it has printed */
async function serveIfNone(shell: Shell, flags: Flags & { readonly onServing: () => void }): Promise<void> {
  if ((await attach(shell, flags, 'any')).instance) return
  // It ends with the client of this process, which is its output.
  const quiet = shellWith(shell, { onKey: () => undefined, continueWithoutOutput: () => {} })
  await runServe(quiet, flags).catch((error: unknown) => {
    shell.out.log.warn(`relay has stopped: ${toRelayError(error).message}`)
    throw error
  })
}
