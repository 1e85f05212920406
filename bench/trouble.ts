// How long a delivery waits for the trouble of another one.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listening } from '../test/kit/ports.js'
import { delivery, load, smallPush } from './load.js'
import { type Benchmark, measure, pair, Relay, type Scope } from './rig.js'

/** Longer than a time limit of one attempt, and than five attempts. Milliseconds. */
const PATIENCE_MS = 150_000

type Trouble = 'answers 500' | 'is not answered'

export const trouble: Benchmark = {
  about: `
Seconds until a signed delivery of a sender reaches a target which has trouble with the one before it; at most ${PATIENCE_MS / 1000}. And the loop of an
agent: the handler answers 500 three times, is mended, and the same delivery is replayed: seconds until the handler has it.`,

  async run(_, scope) {
    const once = { count: 1, warmUp: false }
    const rows = []
    for (const kind of ['answers 500', 'is not answered'] as const) {
      const relays = await pair(async (build) => startHandler(scope, build))
      rows.push(
        ...(await measure(once, relays, async (handler) => ({
          [`behind one that ${kind}, s`]: await behind(handler, kind),
        }))),
      )
    }
    const relays = await pair(async (build) => startHandler(scope, build))
    return [
      ...rows,
      ...(await measure(once, relays, async (handler) => ({
        'mended and replayed, s': await mended(handler),
      }))),
    ]
  },
}

interface Handler {
  readonly relay: Relay
  /** Event ids in the order in which they came. */
  readonly came: string[]
  status: (body: string) => number | undefined
}

async function startHandler(scope: Scope, build: string): Promise<Handler> {
  const came: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data) => (body += String(data)))
    request.on('end', () => {
      came.push(body)
      const status = handler.status(body)
      if (status !== undefined) response.writeHead(status).end()
    })
  })
  const { port, down } = await listening(server)
  scope.defer(down)
  const relay = await new Relay(scope, build).serve('--forward', `http://127.0.0.1:${port}/`)
  const handler: Handler = { relay, came, status: () => 200 }
  return handler
}

const isBad = (body: string): boolean => body.includes('"title":"bad"')

/** Posts a signed delivery, as its sender does. What a person triggers would go past the queue. */
async function send({ relay }: Handler, title: string): Promise<void> {
  const payload = { ...smallPush('octo/demo'), title }
  await load(relay.url, { deliveries: [delivery('push', payload)], connections: 1, count: 1 })
}

async function behind(handler: Handler, kind: Trouble): Promise<number> {
  handler.status = (body) => (!isBad(body) ? 200 : kind === 'answers 500' ? 500 : undefined)
  await send(handler, 'bad')
  await secondsUntil(() => handler.came.some(isBad))
  await send(handler, 'good')
  return secondsUntil(() => handler.came.some((body) => body.includes('"title":"good"')))
}

async function mended(handler: Handler): Promise<number> {
  handler.status = () => 500
  await send(handler, 'bad')
  await secondsUntil(() => handler.came.length >= 3)
  let hasSucceeded = false
  handler.status = () => ((hasSucceeded = true), 200)
  const begun = performance.now()
  await handler.relay.run(['replay', 'last'])
  await secondsUntil(() => hasSucceeded)
  return (performance.now() - begun) / 1000
}

async function secondsUntil(isDone: () => boolean): Promise<number> {
  const begun = performance.now()
  while (!isDone() && performance.now() - begun < PATIENCE_MS) await sleep(20)
  return (performance.now() - begun) / 1000
}
