import path from 'node:path'
import type { Benchmark } from './rig/benchmark.js'
import { temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { compare } from './rig/row.js'
import { RELAY } from './rig/server.js'
import { wallTime } from './rig/wall-time.js'

const ROUNDS = 60

export const startUp: Benchmark = {
  about: `Wall time of the built program, from the start of the process to its end. ${ROUNDS} runs of each.`,
  needs: [],
  async run() {
    using home = temporaryFolder()
    // The same node for all: dist/bin/relay.js finds it through env.
    const env = { PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`, HOME: home.path }
    const run =
      (command: string, ...args: readonly string[]) =>
      () =>
        Promise.resolve(wallTime({ command, args, env }))
    const times = await inTurn(ROUNDS, {
      version: run(RELAY, '--version'),
      help: run(RELAY, '--help'),
      node: run('node', '-e', '0'),
    })
    const node = { baseline: 'node -e 0', other: times.node, unit: ' ms' } as const
    return [
      compare({ ...node, what: 'relay --version', relay: times.version }),
      compare({ ...node, what: 'relay --help', relay: times.help }),
    ]
  },
}
