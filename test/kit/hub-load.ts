import { randomBytes, randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { githubDelivery, post } from './delivery.js'
import type { Env } from './folder.js'
import type { TestHub } from './hub.js'
import { linesOf } from './journal.js'

const SENDERS = 8

export interface LoadOptions {
  /** Milliseconds between two requests of one sender. Default: 0. */
  readonly every?: number
  /** Characters of noise in each body. Default: 2000. */
  readonly size?: number
}

/** Sends until it is stopped, each sender one after the other. Gives the ids that were answered 200, by sender, in order. */
export function load(url: string, { every = 0, size = 2000 }: LoadOptions = {}) {
  const over = new AbortController()
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS })
  const answered: string[][] = Array.from({ length: SENDERS }, () => [])
  const statuses = new Set<number>()
  const send = async (of: string[]): Promise<void> => {
    while (!over.signal.aborted) {
      const id = randomUUID()
      const body = JSON.stringify({ noise: randomBytes(size / 2).toString('hex') })
      const answer = await post(url, githubDelivery({ id, body }), agent).catch(() => undefined)
      if (answer) statuses.add(answer.status)
      if (answer?.status === 200) of.push(id)
      await sleep(answer?.status === 200 ? every : 20)
    }
  }
  const sending = Promise.all(answered.map(send))
  const count = (): number => answered.reduce((sum, of) => sum + of.length, 0)
  return {
    count,
    /** All statuses of answers so far. */
    statuses,
    /** Resolves once so many more were answered 200. */
    async more(wanted: number): Promise<void> {
      const before = count()
      while (count() < before + wanted) await sleep(10)
    },
    async stop(): Promise<string[][]> {
      over.abort()
      await sending
      agent.destroy()
      return answered
    },
  }
}

/** The ids in journals, one after the other. */
export async function idsIn(...places: readonly { readonly env: Env }[]): Promise<readonly string[]> {
  const all = await Promise.all(places.map((place) => linesOf(place)))
  return all.flat().map(({ delivery }) => String(delivery))
}

/** Resolves once nothing waits at the hub any more. */
export async function fetched(server: TestHub): Promise<void> {
  const listed = async (): Promise<string> => (await server.operate('list', '--json')).out
  while (!/"waiting":0\b/.test(await listed())) await sleep(100)
}

/** What of the ids that senders were answered 200 for is lost or out of its sender's order, and what is there twice. */
export function wrong(ids: readonly string[], answered: readonly string[][]): readonly string[] {
  const at = new Map(ids.map((id, i) => [id, i]))
  const repeated = ids.filter((id, i) => at.get(id) !== i)
  const outOfOrder = answered.flatMap((of) =>
    of.filter((id, i) => (at.get(of[i - 1] ?? '') ?? -1) >= (at.get(id) ?? -1)),
  )
  return [...repeated, ...outOfOrder]
}
