import path from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { describe, expect, it } from 'vitest'
import { openInspector } from '../kit/inspector.js'
import { githubDelivery } from '../kit/delivery.js'
import { beginSignIn, consent } from '../kit/pages.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { readDocument } from './contract.js'

/** What a relay answers under its documented address and those of its inspector, whatever it is asked. */
async function answersOf(here: Place, relay: Serving, token: string, while_: () => void) {
  const inspector = await openInspector(here, relay)
  const begun = await beginSignIn(`${relay.address}/auth/sandbox?userId=bob`)
  const back = new URL(await consent(begun.authorize))
  while_()
  const answers: [asked: string, status: number, text: string][] = []
  const asking: Promise<void>[] = []
  // All at once: each may wait for storage.
  const ask = (...asked: Parameters<typeof request>): void => void asking.push(request(...asked))
  const request = async (method: string, address: string, init: RequestInit = {}): Promise<void> => {
    const answer = await fetch(relay.address + address, { method, redirect: 'manual', ...init })
    const text = answer.headers.get('content-type')?.includes('event-stream')
      ? await firstPart(answer)
      : await answer.text()
    answers.push([`${method} ${address}`, answer.status, `${JSON.stringify([...answer.headers])}\n${text}`])
  }
  const json = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({
    owner: 'octo',
    repo: 'demo',
    pullNumber: 2,
    issueNumber: 1,
    commentId: 1,
    body: 'x',
    content: '+1',
    reaction: '+1',
  })
  const { paths } = readDocument()
  for (const [address, operations] of Object.entries(paths))
    for (const method of Object.keys(operations)) {
      const filled = address
        .replace('{provider}', 'sandbox')
        .replace('{userId}', 'ada')
        .replace('{source}', 'stripe')
      if (!/^(get|post|delete|put)$/.test(method)) continue
      if (filled === '/webhook') {
        const { headers, body } = githubDelivery()
        ask('POST', filled, { headers: headers.map(([name, value]) => [name, value]), body })
      } else if (filled.endsWith('/callback'))
        ask('GET', back.pathname + back.search, { headers: { Cookie: begun.cookie } })
      else
        ask(method.toUpperCase(), filled + (filled.startsWith('/auth/sandbox') ? '?userId=ada' : ''), {
          headers: json,
          ...(method === 'post' && { body }),
        })
    }
  const read = ['', '/1', '/1/body', '/1/fixture', '/1/curl'].map((end) => `deliveries${end}`)
  for (const address of [...read, 'refused', 'refused/1', 'state', 'timeline', 'live'])
    ask('GET', `/inspect/api/${address}`, { headers: { Cookie: inspector.cookie } })
  const change = { Cookie: inspector.cookie, 'X-Relay-Key': inspector.key, Origin: relay.address }
  for (const address of ['deliveries/1/forward', 'send', 'open'])
    ask('POST', `/inspect/api/${address}`, {
      headers: { ...change, 'Content-Type': 'application/json' },
      body: JSON.stringify({ from: 1, event: 'push', body: '{}', target: 'x', code: 'x' }),
    })
  for (const address of ['/', '/health', '/ready', '/metrics', '/inspect/', '/instance', '/nothing'])
    ask('GET', address)
  await Promise.all(asking)
  return answers
}

async function firstPart(answer: Response): Promise<string> {
  const reader = answer.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return Buffer.from(value ?? []).toString()
}

/** Ways in which the storage of a running relay fails, with an error that names the database. */
const FAULTS: Readonly<Record<string, (database: DatabaseSyncInstance) => void>> = {
  'its tables are gone': (database) => {
    for (const table of ['kv', 'delivery', 'forward', 'attempt', 'target'])
      database.exec(`PRAGMA foreign_keys = OFF; DROP TABLE IF EXISTS "${table}"`)
  },
  'another process writes all the time': (database) => database.exec('BEGIN IMMEDIATE'),
}

describe('an answer over HTTP names no path of the machine', () => {
  it.each(Object.keys(FAULTS))('where %s', async (fault) => {
    await using here = await place({ signedIn: true })
    const { out: token } = await here.run('token')
    const relay = await here.serve('--metrics')
    await relay.deliver()
    const database = new DatabaseSync(path.join(here.home, 'default', 'relay.db'))
    const answers = await answersOf(here, relay, token.trim(), () => FAULTS[fault]?.(database))
    database.close()
    // It did fail, in more than one place, and the log says where.
    expect(answers.filter(([, status]) => status === 503).length).toBeGreaterThan(4)
    expect(relay.err).toContain(here.home)
    const leaks = answers.filter(
      ([, , text]) => text.includes(here.home) || /relay\.db|\/tmp\/|\/home\/|\/root\//.test(text),
    )
    expect(leaks).toEqual([])
  })
})
