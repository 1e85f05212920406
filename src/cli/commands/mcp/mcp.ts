import { Readable, Writable } from 'node:stream'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { Option } from 'commander'
import { z } from 'zod'
import packageJson from '../../../../package.json' with { type: 'json' }
import { RelayError, toRelayError } from '../../../base/errors.js'
import { printableJson } from '../../../base/text.js'
import { aborted } from '../../../base/wait.js'
import { type Flags, type Shell, shellWith } from '../../command.js'
import { Output } from '../../output/output.js'
import { attach, notServed, SANDBOX_PROFILE } from '../../profile.js'
import { runServe } from '../serve/serve.js'
import { commandOf, type Fields } from './results.js'
import { ACTIONS, INSTRUCTIONS, type Tool, TOOLS } from './tools.js'

interface McpFlags extends Flags {
  readonly serve?: boolean
  readonly allowActions?: boolean
}

/** What only the relay of `--serve` takes. */
const OF_SERVE = ['sandbox', 'port', 'forward', 'exec', 'ignore', 'sources', 'tunnel'] as const

/** Runs `relay mcp`, until its input ends or a signal comes. Standard output carries the protocol alone. */
export async function runMcp(given: Shell, flags: McpFlags): Promise<void> {
  const idle = OF_SERVE.find((name) => flags[name] !== undefined)
  if (idle !== undefined && !flags.serve)
    throw new RelayError('usage', `--${idle.replace('sources', 'source')}: only with --serve`)
  const { stdin, stdout, stderr, env } = given
  if (stdin.isTTY)
    given.out.say('Waiting for the client of an agent, which starts this command: see docs/agents.md')
  const ended = new AbortController()
  const out = new Output({ stdout: stderr, stderr, env }, flags)
  const shell = shellWith(given, {
    out,
    stdout: stderr,
    stdin: Readable.from([]),
    signal: AbortSignal.any([given.signal, ended.signal]),
  })
  const profile = flags.profile ?? (flags.sandbox ? SANDBOX_PROFILE : undefined)
  const common = profile === undefined ? {} : { profile }
  let served: Promise<void> | undefined
  const ready = new Promise<void>((resolve, reject) => {
    if (flags.serve) served = serveIfNone(shell, { ...flags, onServing: resolve }).catch(reject)
    else resolve()
  })
  // The tools that need it say why.
  ready.catch(() => {})
  /** @throws RelayError that says what to run where no relay runs */
  const needRelay = async (): Promise<void> => {
    await ready
    const attached = await attach(shell, common)
    if (!attached.instance) throw notServed(attached, '. relay mcp --serve starts one, at its own start')
  }
  const write = (chunk: Uint8Array, _: string, done: () => void): void => {
    stdout.write(chunk)
    done()
  }
  const transport = new StdioServerTransport(stdin, new Writable({ write }))
  const tools = Object.entries({ ...TOOLS, ...(flags.allowActions && ACTIONS) })
  const createServer = (): McpServer => {
    const about = { name: 'relay', version: packageJson.version }
    const server = new McpServer(about, { instructions: INSTRUCTIONS })
    for (const [name, tool] of tools) addTool(server, name, tool, { shell, flags: common, needRelay })
    return server
  }
  const handle = serveStdio(createServer, { transport, onerror: ({ message }) => out.log.debug(message) })
  for (const event of ['end', 'close']) stdin.once(event, () => ended.abort(CLIENT_GONE))
  await aborted(shell.signal)
  await handle.close()
  await served
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
  const known = commandOf(command).options
  const choices = z.object(Object.fromEntries(options.map((option) => [option, schemaOf(known.get(option))])))
  const own = z.object(args)
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
      if (needsRelay?.(given)) await needRelay()
    }
    const timer = setInterval(() => void look().catch((error: unknown) => gone.abort(error)), PROGRESS_MS)
    try {
      await look()
      const signal = AbortSignal.any([shell.signal, mcpReq.signal, gone.signal])
      const all = { ...flags, ...choices.parse(given) }
      const result = await run(shellWith(shell, { signal }), all, own.parse(given))
      return { content: contentOf(printableJson(JSON.stringify(result))), structuredContent: result }
    } catch (error) {
      return { content: contentOf(toRelayError(error).message), isError: true }
    } finally {
      clearInterval(timer)
    }
  })
}

const contentOf = (text: string) => [{ type: 'text' as const, text }]

/** What a tool can be given for an option of its command. */
function schemaOf({ argChoices, description, flags, parseArg } = new Option('')): z.ZodType {
  const text = z.coerce.string()
  const value = argChoices ? z.enum(argChoices) : parseArg ? z.array(text) : text
  const schema = flags.includes('<') ? value : z.boolean()
  return schema.optional().describe(description.replaceAll('\u00a0', ' '))
}

/** Serves unless a relay runs. */
async function serveIfNone(shell: Shell, flags: Flags & { readonly onServing: () => void }): Promise<void> {
  const { instance } = await attach(shell, flags, 'any')
  // It ends with the client of this process, which is its output.
  const quiet = shellWith(shell, { onKey: () => undefined, continueWithoutOutput: () => {} })
  if (instance) return flags.onServing()
  await runServe(quiet, flags).catch((error: unknown) => {
    shell.out.log.warn(`relay has stopped: ${toRelayError(error).message}`)
    throw error
  })
}
