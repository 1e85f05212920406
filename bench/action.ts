import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { compare } from './rig/row.js'
import { startSignedIn } from './rig/signed-in.js'
import { median } from './rig/statistics.js'

const ROUNDS = 15
const REQUESTS = 100

export const action: Benchmark = {
  about: `A comment through the running service to a sandbox in another process, compared with the same comment sent to the sandbox
with fetch alone. One request at a time, ${REQUESTS} in each of ${ROUNDS} rounds.`,
  needs: [],
  async run() {
    await using signedIn = await startSignedIn()
    const { relay, sandbox, token } = signedIn
    const place = { owner: 'octo', repo: 'demo', issueNumber: 1 }
    const api = `${sandbox.url}/api/v3/repos/octo/demo/issues/1/comments`
    const times = await inTurn(ROUNDS, {
      relay: () => latency(`${relay.url}/api/comment`, token, { ...place, body: 'hello' }),
      bare: () => latency(api, token, { body: 'hello' }),
    })
    return [
      compare({
        what: 'comment, p50',
        baseline: 'fetch',
        relay: times.relay,
        other: times.bare,
        unit: ' ms',
        figure: 'difference',
      }),
    ]
  },
}

/** The median over the requests, in milliseconds. */
async function latency(url: string, token: string, body: object): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const times: number[] = []
  for (let n = 0; n < REQUESTS; n++) {
    const begun = performance.now()
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    await answer.arrayBuffer()
    times.push(performance.now() - begun)
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  }
  return median(times)
}
