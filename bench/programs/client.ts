// A bare undici client: posts signed pushes, each with an id that begins with the instant at which it was sent.
//   /post?to=…&count=n&concurrency=n    answers when all are posted
//   /paced?to=…&count=n&perSecond=n     the same, at a steady rate
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { PUSH, signatureOf } from '../rig/push.js'
import { now } from './clock.js'
import { listenHere } from './listen.js'

/** More than are ever sent at once. */
const CONNECTIONS = 64

const signature = signatureOf(PUSH)
const dispatcher = new Agent({ connections: CONNECTIONS })
let sent = 0

listenHere((incoming, outgoing) => {
  const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://client')
  const to = `${searchParams.get('to')}/webhook`
  const number = (name: string): number => Number(searchParams.get(name))
  const posted =
    pathname === '/paced'
      ? paced(to, number('count'), number('perSecond'))
      : posts(to, number('count'), number('concurrency'))
  void posted.then(() => outgoing.end('{}'))
})

async function posts(to: string, count: number, concurrency: number): Promise<void> {
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await post(to)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

async function paced(to: string, count: number, perSecond: number): Promise<void> {
  const begun = now()
  const answers: Promise<void>[] = []
  for (let n = 0; n < count; n++) {
    await sleep(Math.max(0, begun + (n * 1000) / perSecond - now()))
    answers.push(post(to))
  }
  await Promise.all(answers)
}

async function post(to: string): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': `${now()}-${sent++}`,
    'x-hub-signature-256': signature,
  }
  const { statusCode, body } = await request(to, { method: 'POST', headers, body: PUSH, dispatcher })
  await body.dump()
  if (statusCode !== 200) throw new Error(`${to} answered ${statusCode}`)
}
