import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { place } from '../kit/place.js'

/** Requests in one round; a round takes well below a second. */
const MANY = 500
const LONG = `/${'x'.repeat(15_000)}`

/** Asks for a path again and again, over a few connections, and gives the statuses that were answered. */
async function flood(url: string, host: string): Promise<ReadonlySet<number | undefined>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const one = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      request(url, { agent, headers: { Host: host } }, (answer) => {
        text(answer).then(() => resolve(answer.statusCode), reject)
      })
        .on('error', reject)
        .end()
    })
  const statuses = await Promise.all(Array.from({ length: MANY }, one))
  agent.destroy()
  return new Set(statuses)
}

it.each([
  ['callbacks', '/auth/github/callback?code=x&state=y', '127.0.0.1', 302, 'Sign-in failed: invalid_state'],
  ['a foreign Host and a long path', LONG, 'evil.example', 403, 'answered 403: Forbidden host'],
])('relay serve logs no line for each request of a flood: %s', async (_, path, host, status, what) => {
  await using here = await place({ host: 'none' })
  const relay = await here.serve()
  const start = performance.now()
  expect(await flood(`${relay.address}${path}`, host)).toEqual(new Set([status]))
  await relay.says('more like it in the last second')
  const seconds = (performance.now() - start) / 1000
  const { err } = await relay.stop()
  const lines = err.split('\n').filter((line) => line.includes(what))
  expect(lines.length).toBeGreaterThanOrEqual(2)
  expect(lines.length).toBeLessThanOrEqual(2 + seconds)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(300)
})
