import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Benchmark } from './rig/benchmark.js'
import { temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { compare } from './rig/row.js'
import { RELAY } from './rig/server.js'
import { startSignedIn } from './rig/signed-in.js'
import { wallTime } from './rig/wall-time.js'

const ROUNDS = 40

export const comment: Benchmark = {
  about: `Wall time of the command with a running service and a sandbox, compared with curl posting the same to the service plus an
empty Node program, which is the minimum for any command written for Node. ${ROUNDS} runs of each.`,
  needs: ['curl'],
  async run() {
    await using signedIn = await startSignedIn()
    const { relay, token, env } = signedIn
    using folder = temporaryFolder()
    const headers = path.join(folder.path, 'headers')
    writeFileSync(headers, `Authorization: Bearer ${token}\nContent-Type: application/json\n`)
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' })
    const post = ['-sSf', '-H', `@${headers}`, '-d', body, `${relay.url}/api/comment`]
    const run = (command: string, ...args: readonly string[]): number => wallTime({ command, args, env })
    const times = await inTurn(ROUNDS, {
      relay: async () => run(process.execPath, RELAY, 'comment', 'octo/demo#1', 'hello'),
      other: async () => run('curl', ...post) + run(process.execPath, '-e', '0'),
    })
    return [
      compare({
        ...times,
        what: 'relay comment',
        baseline: 'curl, and node -e 0',
        unit: ' ms',
      }),
    ]
  },
}
