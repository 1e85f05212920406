import { expect, it } from 'vitest'
import { serveCommand } from '../../src/cli/commands/serve.js'
import { mcpCommand } from '../../src/cli/commands/mcp.js'
import type { ServeItem } from '../../src/cli/commands/serve/items.js'
import { Queue } from '../../src/base/queue.js'
import { SECRET, githubDelivery, post } from '../kit/delivery.js'
import { testShell } from './cli-shell.js'

// A service gives what happens as a stream, as every other command gives its result. Nothing but `print` writes.

const SILENT = {
  write() {
    throw new Error('a service printed by itself')
  },
}

/** A service with a journal in memory, and the items of its stream. */
function service(signal: AbortSignal) {
  const env = { RELAY_STORE: 'memory', RELAY_WEBHOOK_SECRET: SECRET, RELAY_PORT: '0' }
  const { shell } = testShell({ env, signal, stdout: SILENT, stderr: SILENT })
  return serveCommand.run(shell, { forward: [] })
}

/** Reads until an item of that type. */
async function next<Type extends ServeItem['type']>(items: AsyncIterator<ServeItem>, type: Type) {
  for (;;) {
    const { value, done } = await items.next()
    if (done) throw new Error(`the stream ended without ${type}`)
    const item: ServeItem = value
    if (isOf(item, type)) return item
  }
}

function isOf<Type extends ServeItem['type']>(
  item: ServeItem,
  type: Type,
): item is Extract<ServeItem, { readonly type: Type }> {
  return item.type === type
}

it('gives what happens as values, and prints nothing itself', async () => {
  const stop = new AbortController()
  const items = service(stop.signal)
  expect(await next(items, 'starting')).toMatchObject({ place: { profile: 'default' } })
  const { url } = await next(items, 'listening')
  const { running } = await next(items, 'running')
  expect(running).toMatchObject({ url, payloadUrl: `${url}/webhook`, targets: [], signedIn: null })
  expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
  expect(await next(items, 'delivery')).toMatchObject({ receipt: { n: 1, duplicate: false }, targets: [] })
  stop.abort()
  const rest: ServeItem[] = []
  for await (const item of items) rest.push(item)
  expect(rest.map(({ type }) => type)).toEqual([])
})

it('takes deliveries while nothing reads the stream, and then gives them in their order', async () => {
  const stop = new AbortController()
  const items = service(stop.signal)
  const { url } = await next(items, 'listening')
  const statuses = await Promise.all(
    Array.from({ length: 30 }, async () => (await post(`${url}/webhook`, githubDelivery())).status),
  )
  expect(statuses).toEqual(Array.from({ length: 30 }, () => 200))
  stop.abort()
  const numbers: number[] = []
  for await (const item of items) if (item.type === 'delivery') numbers.push(item.receipt.n)
  expect(numbers).toEqual(Array.from({ length: 30 }, (_, i) => i + 1))
})

it('stops when the reader of the stream leaves', async () => {
  const items = service(new AbortController().signal)
  const { url } = await next(items, 'listening')
  await items.return()
  await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed')
})

it('ends with its failure after the items before it', async () => {
  const { shell } = testShell({ env: { RELAY_STORE: 'memory' }, stdout: SILENT, stderr: SILENT })
  const items = serveCommand.run(shell, { sandbox: true, hook: ['octo/demo'] })
  expect((await items.next()).value).toMatchObject({ type: 'starting' })
  await expect(items.next()).rejects.toMatchObject({ kind: 'usage' })
})

it('leaves standard output to the protocol in relay mcp', async () => {
  const { shell } = testShell({ stdout: SILENT, stderr: SILENT })
  const items: unknown[] = []
  for await (const item of mcpCommand.run(shell, {})) items.push(item)
  expect(items).toEqual([])
})

it('never makes a sender of items wait, and counts what is dropped', async () => {
  const queue = new Queue<string>(2, (count) => `${count} dropped`)
  for (const text of ['a', 'b', 'c', 'd']) queue.push(text)
  queue.end()
  const read: string[] = []
  for await (const text of queue) read.push(text)
  expect(read).toEqual(['a', 'b', '2 dropped'])
})
