import { Writable } from 'node:stream'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { SANDBOX_PROFILE } from '../../base/command-line.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import { aborted, sleep } from '../../base/wait.js'
import { runServe } from '../commands/serve/serve.js'
import { leftOutText } from '../commands/serve/terminal.js'
import { type Flags, type PrintingShell, shellWith } from '../command.js'
import { POLL_MS } from '../follow.js'
import { Output } from '../output/output.js'
import { commandFor, notServed } from '../advice.js'
import { openProfile } from '../profile.js'
import { openSettings } from '../settings/read.js'
import { createServer } from './server.js'
import type { Call, Tool, Tools } from './tool.js'
import { ACTIONS, TOOLS } from './tools.js'

/** Settings of `--serve`'s relay only. */
const OF_SERVE = ['sandbox', 'port', 'forward', 'exec', 'ignore', 'sources', 'tunnel'] as const
export type McpFlags = Flags & {
  readonly serve?: boolean
  readonly allowProjectExec?: boolean
  readonly allowActions?: boolean
}

/**
 * Runs `relay mcp` until its input ends or a signal arrives. Standard output carries only the protocol. @throws
 * RelayError `usage`, `too_large`
 */
export async function runMcp(given: PrintingShell, flags: McpFlags): Promise<void> {
  const idle = OF_SERVE.find((name) => flags[name] !== undefined)
  if (idle !== undefined && !flags.serve)
    throw new RelayError('usage', `--${idle.replace('sources', 'source')}: only with --serve`)
  if (flags.allowProjectExec && !flags.serve)
    throw new RelayError('usage', '--allow-project-exec: only with --serve')
  const { stdin, stdout, stderr, env, signal } = given
  if (stdin.isTTY)
    given.out.say('Waiting for the client of an agent, which starts this command: see docs/agents.md')
  const ended = new AbortController()
  const out = new Output({ stdout: stderr, stderr, env }, flags)
  const own = shellWith(given, { out, signal: AbortSignal.any([signal, ended.signal]) })
  const relay = flags.serve ? startRelay(own, flags) : undefined
  // Ignored here: the tools that need the relay report why it could not start.
  relay?.catch(() => {})
  const profile = flags.profile ?? (flags.sandbox ? SANDBOX_PROFILE : env['RELAY_PROFILE'])
  const shell = shellWith(own, { env: { ...env, RELAY_PROFILE: profile?.toString() } })
  /** Checks that a relay runs. @throws RelayError with the command to run if none does */
  const needRelay = async (): Promise<void> => {
    await relay
    await using profile = await openProfile(shell, {})
    if (!profile.instance)
      throw notServed(profile, `. ${profile.command('mcp --serve')} starts one, at its own start`)
  }
  const noteLeftOut = async ({ notes }: Call): Promise<void> => {
    const text = await relay?.then(({ leftOut }) => leftOut?.()).catch(() => undefined)
    if (text !== undefined) notes.add(text)
  }
  const tools = {
    ...TOOLS,
    ...noted(['show_routes', 'relay_state'], noteLeftOut),
    ...(flags.allowActions && ACTIONS),
  }
  const output = new Writable({ write: (chunk, _, done) => done(void stdout.write(chunk)) })
  const transport = new StdioServerTransport(stdin, output, { maxBufferSize: MAX_MESSAGE })
  const onerror = (error: Error): void => out.log.debug(error.message)
  const handle = serveStdio(() => createServer(tools, shell, needRelay), { transport, onerror })
  const { onclose } = transport
  const end = (): void => {
    onclose?.()
    ended.abort(stdin.readableEnded || stdin.destroyed ? undefined : TOO_LONG)
  }
  Object.assign(transport, { onclose: end })
  given.continueWithoutOutput(() => ended.abort())
  await aborted(own.signal)
  await handle.close()
  await relay?.then(({ ended }) => ended).catch(() => {})
  if (own.signal.reason === TOO_LONG) throw TOO_LONG
}

/** Longest message, and other bytes read with it: a body of 15 MiB, and more than an agent writes. Bytes. */
const MAX_MESSAGE = 16 * 2 ** 20
// Not answered, since its id is not read.
const TOO_LONG = new RelayError('too_large', 'The client has sent a message of more than 16 MiB')

/** A relay that this process has started; empty if one ran before. */
interface Started {
  readonly ended?: Promise<void>
  /**
   * Returns a message about commands that a file of the folder now names and this relay leaves out. Undefined if there
   * are none.
   */
  readonly leftOut?: () => Promise<string | undefined>
}

/**
 * Starts a relay unless one runs, which ends with the client of this process. Resolves once other commands find it. An
 * agent's client starts it, and shows its messages to no person, so the commands of a checkout would run unread.
 */
async function startRelay(shell: PrintingShell, given: McpFlags): Promise<Started> {
  const flags = { ...given, projectExec: given.allowProjectExec === true }
  const isRunning = async (): Promise<boolean> => {
    await using profile = await openProfile(shell, flags, { mustExist: false })
    return profile.instance !== undefined
  }
  if (await isRunning()) return {}
  const ended = runServe(shellWith(shell, { onKey: () => undefined, continueWithoutOutput: () => {} }), flags)
  ended.catch((error: unknown) => shell.out.log.warn(`relay has stopped: ${toRelayError(error).message}`))
  for (; !(await isRunning()); shell.signal.throwIfAborted())
    await Promise.race([ended, sleep(POLL_MS, shell)])
  const leftOut = async (): Promise<string | undefined> => {
    const settings = await openSettings(shell, flags)
    const loaded = await settings.read(undefined, ['profile', 'exec'])
    const about = { ...loaded, instance: { sandbox: flags.sandbox === true } }
    return loaded.leftOutExec && leftOutText(loaded.leftOutExec, (line) => commandFor(about, line))
  }
  return { ended, leftOut }
}

/** Adds a note to the results of some tools. */
function noted(names: readonly string[], note: (call: Call) => Promise<void>): Tools {
  const chosen = Object.entries(TOOLS).filter(([name]) => names.includes(name))
  const run = (tool: Tool) => async (call: Call) => {
    await note(call)
    return tool.run(call)
  }
  return Object.fromEntries(chosen.map(([name, tool]) => [name, { ...tool, run: run(tool) }]))
}
