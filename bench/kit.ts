// What a test of somebody else's program waits for: the testing kit.
import path from 'node:path'
import { type Benchmark, type Figures, measure, pair, run } from './rig.js'

const ROUNDS = 7
const COUNT = 20

export const kit: Benchmark = {
  about: `
The testing kit, loaded with \`require\` into a process of its own for each round. A start is \`startRelay\` with its
sandbox; a delivery is \`deliver\` of a made-up push to an HTTP server of the same process, until its answer is stored.
Medians of ${COUNT} relays, and of ${5 * COUNT} deliveries. Memory: RssAnon after a garbage collection, with ${COUNT} relays that
have delivered once, against before. ${ROUNDS} rounds.`,

  async run({ rounds, size }) {
    const builds = await pair((build) => build)
    const count = String(size === 'short' ? 3 : COUNT)
    const figures = async (build: string): Promise<Figures> => {
      const { out } = await run(process.execPath, [
        '--expose-gc',
        path.resolve('bench/kit-turn.mjs'),
        build,
        count,
      ])
      return JSON.parse(out)
    }
    return measure(rounds(ROUNDS), builds, figures)
  },
}
