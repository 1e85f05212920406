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
import { serveUntilQuit } from '../serve/serve.js'
import { commandOf } from './run.js'
import { ACTIONS, type Call, INSTRUCTIONS, type Tool, TOOLS } from './tools.js'

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
  await using relay = startOnDemand(shell, flags)
  const needRelay = async (): Promise<void> => {
    if (flags.serve) return relay.start()
    const attached = await attach(shell, common)
    if (!attached.instance) throw notServed(attached, '. relay mcp --serve would start one by itself')
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
  const { onclose } = transport
  transport.onclose = () => {
    onclose?.()
    ended.abort(new RelayError('cancelled', 'The client has gone'))
  }
  if (flags.serve) relay.start().catch((error: unknown) => out.log.warn(toRelayError(error).message))
  await aborted(shell.signal)
  await handle.close()
}

/** A failure of the tool's command is a result that says what to do. */
function addTool(
  server: McpServer,
  name: string,
  { does, kind, command, options = [], args = {}, output, run }: Tool,
  { shell, flags, needRelay }: Pick<Call, 'shell' | 'flags' | 'needRelay'>,
): void {
  const known = commandOf(command).options
  const choices = z.object(Object.fromEntries(options.map((option) => [option, schemaOf(known.get(option))])))
  const ownSchema = z.object(args)
  const config = {
    description: does,
    inputSchema: choices.extend(args),
    outputSchema: z.looseObject({ ...output, notes: z.array(z.string()).describe('messages of relay') }),
    annotations: {
      readOnlyHint: kind === 'reads',
      destructiveHint: kind === 'acts',
      openWorldHint: kind === 'acts',
    },
  }
  server.registerTool(name, config, async (given, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    const call: Call = {
      shell: shellWith(shell, { signal: AbortSignal.any([shell.signal, mcpReq.signal]) }),
      input: ownSchema.parse(given),
      flags: { ...flags, ...choices.parse(given) },
      needRelay,
      progress(progress, message) {
        const params = { progressToken, progress, message }
        // A client that has gone reads none.
        if (progressToken !== undefined)
          mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
      },
    }
    try {
      const result = await run(call)
      return {
        content: [{ type: 'text', text: printableJson(JSON.stringify(result)) }],
        structuredContent: result,
      }
    } catch (error) {
      return { content: [{ type: 'text', text: toRelayError(error).message }], isError: true }
    }
  })
}

/** What a tool can be given for an option of its command. */
function schemaOf(option = new Option('')): z.ZodType {
  const { argChoices, description, flags, parseArg } = option
  const text = z.coerce.string()
  const value = argChoices ? z.enum(argChoices) : parseArg ? z.array(text) : text
  return (flags.includes('<') ? value : z.boolean()).optional().describe(description.replaceAll('\u00a0', ' '))
}

/** A relay that starts when it is needed and none runs. Disposing of it ends it. */
function startOnDemand(given: Shell, flags: Flags) {
  const stop = new AbortController()
  const signal = AbortSignal.any([given.signal, stop.signal])
  // Without the client of this process, it ends too.
  const shell = shellWith(given, { signal, onKey: () => undefined, continueWithoutOutput: () => {} })
  let started: Promise<void> | undefined
  let ended = Promise.resolve()
  const serve = async (onServing: () => void): Promise<void> => {
    const { instance } = await attach(shell, flags, 'any')
    if (!instance) return serveUntilQuit(shell, flags, onServing)
    onServing()
  }
  return {
    /** Resolves once a relay runs. @throws RelayError that says why it cannot start */
    start(): Promise<void> {
      started ??= new Promise((resolve, reject) => {
        ended = serve(resolve)
          .then(() => reject(new RelayError('unavailable', 'relay has stopped')), reject)
          .finally(() => (started = undefined))
      })
      return started
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new RelayError('cancelled', 'relay mcp ends'))
      await ended
    },
  }
}
