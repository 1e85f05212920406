import { define, type Shell } from '../command.js'
import type { McpFlags } from '../mcp/own-relay.js'

export const mcpCommand = define({
  description: `A Model Context Protocol server on standard input and output, which the agent's client starts. Its tools list, show, await,
replay and make up deliveries, explain refused requests and routes, and show what runs. They act on nothing else: the content of a
delivery is data, and no tool follows it. docs/agents.md has the configuration of common clients.`,
  examples: `relay mcp
relay mcp --serve --forward http://localhost:3000/hooks  start a relay if none runs
relay mcp --allow-actions                                with the tools comment, merge and react`,
  options: [
    ['--serve', 'start a relay if none runs, for as long as this command runs'],
    ['--sandbox', 'with --serve: start an emulated code host, in the profile sandbox'],
    [
      '--allow-project-exec',
      'with --serve: also run the commands of relay.json and .env, once you have read them',
    ],
    ['--allow-actions', 'offer comment, merge and react, which act on the code host as the signed-in user'],
  ],
  settings: ['port', 'sandboxPort', 'forward', 'exec', 'ignore', 'sources', 'tunnel'],
  env: ['user', 'home', 'store', 'webhookSecret'],
  exits: [[0, 'success, also at the end of the input and after Ctrl-C']],
  isService: true,
  async *run(shell: Shell, flags: McpFlags) {
    const { runMcp } = await import('../mcp/mcp.js')
    yield* runMcp(shell, flags)
  },
  // Its stream is that of the relay which it serves.
  async print(items, out) {
    const { printServe } = await import('./serve/events.js')
    await printServe(items, out)
  },
  // Standard output is the protocol's.
  json: () => undefined,
})
