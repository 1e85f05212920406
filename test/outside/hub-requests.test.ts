import { DatabaseSync } from '@photostructure/sqlite'
import { Agent } from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { githubDelivery, type Header, post } from '../kit/delivery.js'
import { exchange } from '../kit/http.js'
import { hub, joining, type TestHub } from '../kit/hub.js'
import { entriesOf, linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fresh, json } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const OK = '{"ok":true}'

const here = fresh(() => place({ host: 'none' }))

/** Sends a request byte for byte. */
async function raw(
  address: string,
  method: string,
  target: string,
  lines: readonly Header[],
  body: Uint8Array,
) {
  const { port, host } = new URL(address)
  const all: readonly Header[] = [
    ['Host', host],
    ...lines,
    ['Content-Length', String(body.byteLength)],
    ['Connection', 'close'],
  ]
  const head = [`${method} ${target} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`)]
  return exchange(Number(port), Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]))
}

describe('a request to a channel', () => {
  it('is stored and answered 200 whatever its method, path, query and body, and refused at the workstation', async () => {
    await using server = await hub()
    const relay = await here.serveWith({ env: { ...here.env, ...(await joining(server)) } }, '--tunnel')
    const { pathname } = new URL(String((await relay.object(CONNECTED))['url']))
    await relay.stop()
    const body = Buffer.from([0, 255, 10, 13, 128, 34])
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND']
    const targets = ['', '/', '/a/../b//c%2F%zz', '?q=1&q=2%20+&', '/x?%00', '/%E2%82%AC']
    for (const method of methods)
      for (const target of targets) {
        const answer = await raw(server.address, method, pathname + target, [], body)
        expect([method, target, answer.status, answer.body]).toEqual([
          method,
          target,
          200,
          method === 'HEAD' ? '' : OK,
        ])
      }
    const waiting = methods.length * targets.length
    expect(await json(server.operate('list', '--json'))).toMatchObject({ waiting })
    const again = await here.serve('--tunnel', server.address)
    await expect.poll(() => json(server.operate('list', '--json'))).toMatchObject({ waiting: 0 })
    await again.stop()
    expect(await linesOf(here)).toEqual([])
  })

  it('comes with its query, and each header line as it was written, in order, also twice', async () => {
    await using server = await hub()
    await using target = await receiver()
    const env = { ...here.env, ...(await joining(server)) }
    const flags = [
      '--source',
      'open=none event=$.type',
      '--allow-unsigned',
      '--forward',
      `open/*=${target.url}`,
    ]
    const relay = await here.serveWith({ env }, '--tunnel', ...flags)
    const { pathname } = new URL(String((await relay.object({ ...CONNECTED, source: 'open' }))['url']))
    const lines: readonly Header[] = [
      ['content-type', 'application/json'],
      ['X-Twice', 'one'],
      ['x-OTHER', ' spaced  '],
      ['x-twice', 'two'],
    ]
    const body = Buffer.from('{"type": "made", "é": 12345678901234567890}')
    expect((await raw(server.address, 'POST', `${pathname}?type=made&b=%2F+`, lines, body)).status).toBe(200)
    await target.has(1)
    const [handed] = target.received
    expect(handed?.body.equals(body)).toBe(true)
    const own = handed?.headers.filter(([name]) => /^x-(?:twice|other)$/i.test(name))
    expect(own).toEqual([
      ['X-Twice', 'one'],
      ['x-OTHER', 'spaced'],
      ['x-twice', 'two'],
    ])
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ event: 'made' })
    expect(await json(here.run('show', '1', '--json'))).toMatchObject({ query: 'type=made&b=%2F+' })
  })

  it('that its sender repeats is a duplicate by the id of its sender', async () => {
    await using server = await hub()
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    for (const id of ['one', 'one', 'two', 'one'])
      expect((await post(url, githubDelivery({ id }))).status).toBe(200)
    await relay.object({ type: 'delivery', delivery: 'two' })
    await expect
      .poll(async () => (await linesOf(here)).map(({ delivery, duplicates }) => [delivery, duplicates]))
      .toEqual([
        ['one', 2],
        ['two', 0],
      ])
  })

  it('stays until it is fetched, however long, and then for --keep', async () => {
    let later = 0
    const clock = (): number => Date.now() + later
    const limits = { sweep: 50 }
    const seams = { clock, limits }
    await using server = await hub({ flags: ['--keep', '1h'], seams })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env, seams: { clock } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    await relay.stop()
    expect((await post(url, githubDelivery({ id: 'waits' }))).status).toBe(200)
    later = 400 * 86_400_000
    // The first was the workstation's own test message, which was fetched.
    await expect.poll(() => stored(server)).toEqual([2])
    await sleep(300)
    const again = await here.serveWith({ env, seams: { clock } }, '--tunnel')
    await again.object({ type: 'delivery', delivery: 'waits' })
    await again.stop()
    later += 7_200_000
    // The newest stays until another comes: its number must not come again. This one is a test message.
    await expect.poll(() => stored(server)).toEqual([3])
  })

  it('leaves nothing but its number once it was fetched and --keep is over, if it is the newest', async () => {
    let later = 0
    const clock = (): number => Date.now() + later
    await using server = await hub({ flags: ['--keep', '1h'], seams: { clock, limits: { sweep: 50 } } })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env, seams: { clock } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    const delivery = githubDelivery({ id: 'last', body: '{"token":"canary"}' })
    expect((await post(`${url}?key=canary`, delivery)).status).toBe(200)
    await relay.object({ type: 'delivery', delivery: 'last' })
    await relay.stop()
    expect(newest(server)).toContain('canary')
    later = 7_200_000
    await expect.poll(() => newest(server)).not.toMatch(/canary|last|POST/)
    expect(stored(server)).toHaveLength(1)
  })

  it('is one of 5,000 from 32 senders at once: all are answered 200, and come once', async () => {
    await using server = await hub()
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    const ids = Array.from({ length: 5000 }, (_, i) => `id-${i}`)
    const agent = new Agent({ keepAlive: true, maxSockets: 32 })
    const left = ids.values()
    const sender = async (): Promise<void> => {
      for (const id of left) expect((await post(url, githubDelivery({ id }), agent)).status).toBe(200)
    }
    await Promise.all(Array.from({ length: 32 }, sender))
    agent.destroy()
    await relay.objects({ type: 'delivery' }, ids.length)
    await relay.stop()
    expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId).toSorted()).toEqual(ids.toSorted())
  })
})

/** All that the database of a hub has of its newest request. */
function newest({ env }: TestHub): string {
  using data = new DatabaseSync(path.join(String(env['RELAY_HOME']), 'hub', 'relay.db'), { readOnly: true })
  const row = data
    .prepare('SELECT * FROM delivery JOIN body ON body.n = delivery.n ORDER BY delivery.n DESC LIMIT 1')
    .get()
  const { bytes, ...columns } = { bytes: new Uint8Array(), ...row }
  return JSON.stringify(columns) + Buffer.from(bytes).toString()
}

/** Numbers of the requests in the database of a hub. */
function stored({ env }: TestHub): number[] {
  using data = new DatabaseSync(path.join(String(env['RELAY_HOME']), 'hub', 'relay.db'), { readOnly: true })
  return data
    .prepare('SELECT n FROM delivery ORDER BY n')
    .all()
    .map(({ n }) => Number(n))
}
