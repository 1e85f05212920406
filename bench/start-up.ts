import path from 'node:path'
import type { Benchmark } from './rig/benchmark.js'
import { temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { atMost, compare } from './rig/row.js'
import { RELAY } from './rig/server.js'
import { wallTime } from './rig/wall-time.js'

const ROUNDS = 60

export const startUp: Benchmark = {
  about: `Wall time of the program as it is built, from starting the process to its end. ${ROUNDS} runs of each.`,
  needs: [],
  async run() {
    using home = temporaryFolder()
    // The same node for all: dist/bin/relay.js finds it by way of env.
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
    const node = { beside: 'node -e 0', other: times.node, unit: ' ms' } as const
    return [
      compare({ ...node, what: 'relay --version', relay: times.version, target: atMost(1.25) }),
      compare({ ...node, what: 'relay --help', relay: times.help, target: atMost(1.4) }),
    ]
  },
}
