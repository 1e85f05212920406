import { describe, expect, it } from 'vitest'
import { githubDelivery, sign } from '../kit/delivery.js'
import { connect, type Connection, exchange, requestText } from '../kit/http.js'
import { place } from '../kit/place.js'
import { fresh } from './fixture.js'

const MIB = 1_048_576
const HEALTH = requestText('GET', '/health')

/** How a client that has no secret announces a body that it never ends. */
const WAYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'with a length': {},
  'in chunks': { 'Transfer-Encoding': 'chunked' },
  'with a signature': { 'X-Hub-Signature-256': sign('another', '') },
}
const isChunked = (headers: Readonly<Record<string, string>>): boolean => 'Transfer-Encoding' in headers

describe('clients that keep their bodies back', () => {
  const here = fresh(() => place({ host: 'none' }))
  const relay = fresh(() => here.serve('--max-body', String(16 * MIB)))

  /** Sends all but the end of a body. */
  async function holdBack(bytes: number, headers: Readonly<Record<string, string>>): Promise<Connection> {
    const connection = await connect(relay.port)
    const length = isChunked(headers) ? {} : { 'Content-Length': String(bytes) }
    connection.send(requestText('POST', '/webhook', { ...length, ...headers }))
    const body = Buffer.alloc(bytes - 1, 'a')
    const sent = isChunked(headers) ? [`${body.length.toString(16)}\r\n`, body, '\r\n'] : [body]
    for (const each of sent) await new Promise((resolve) => connection.socket.write(each, resolve))
    // Answered after what was sent before has been read.
    await exchange(relay.port, HEALTH)
    return connection
  }

  /** As many as fill all room, with ever smaller ones. */
  async function fill(headers: Readonly<Record<string, string>>): Promise<Connection[]> {
    const held: Connection[] = []
    const sizes = [...Array<number>(4).fill(16 * MIB), MIB, 65_536, 16_000, 600, 2]
    for (const bytes of sizes) held.push(await holdBack(bytes, headers))
    return held
  }

  async function deliver(bytes: number): Promise<number> {
    const body = `{"a":"${'a'.repeat(bytes - 8)}"}`
    const { headers } = githubDelivery({ body })
    return (await exchange(relay.port, requestText('POST', '/webhook', Object.fromEntries(headers), body)))
      .status
  }

  it.each(Object.entries(WAYS))('take no room from a delivery of any size: %s', async (_, headers) => {
    let held = await fill(headers)
    for (const bytes of [100, 1000, 65_536, MIB, 16 * MIB]) {
      // Also a byte now and then is no reason to keep room.
      for (const { send } of held) send(isChunked(headers) ? '1\r\na\r\n' : '')
      expect([bytes, await deliver(bytes)]).toEqual([bytes, 200])
      held = [...held, ...(await fill(headers))]
    }
    for (const { socket } of held) socket.destroy()
    expect(relay.err).not.toContain('error:')
  })

  it('lose their place to what arrives, the one that was silent longest first, and get 503', async () => {
    const first = await holdBack(16 * MIB, {})
    const second = await holdBack(16 * MIB, {})
    const rest = [await holdBack(16 * MIB, {}), await holdBack(15 * MIB, {})]
    // The first ends, so the second was silent for longest.
    first.send('a')
    expect(await first.answer()).toMatchObject({ status: 401 })
    expect(await deliver(16 * MIB)).toBe(200)
    expect(await deliver(16 * MIB)).toBe(200)
    rest.push(await holdBack(16 * MIB, {}), await holdBack(16 * MIB, {}))
    second.send('a')
    expect(await second.answer()).toMatchObject({
      status: 503,
      body: '{"error":"Too many request bodies at once"}',
      headers: { 'retry-after': '5' },
    })
    for (const { socket } of [first, second, ...rest]) socket.destroy()
  })

  it('cannot keep it with whole bodies whose answers wait behind a slow one', async () => {
    await using signedIn = await place({ signedIn: true })
    const { port } = await signedIn.serveWith({ seams: { limits: { codeHost: 8000 } } })
    const token = (await signedIn.run('token')).out.trim()
    const comment = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = 'a'.repeat(MIB)
    const unproved = requestText('POST', '/webhook', { 'X-Hub-Signature-256': sign('another', '') }, body)
    const held: Connection[] = []
    for (let i = 0; i < 8; i++) {
      signedIn.sandbox.faults.next('comment', { kind: 'slow', ms: 60_000 })
      const connection = await connect(port)
      connection.send(requestText('POST', '/api/comment', headers, comment))
      for (let n = 0; n < 12; n++) await new Promise((resolve) => connection.socket.write(unproved, resolve))
      held.push(connection)
      await exchange(port, HEALTH)
    }
    const large = githubDelivery({ body: `{"a":"${'a'.repeat(MIB - 8)}"}` })
    const sent = requestText('POST', '/webhook', Object.fromEntries(large.headers), large.body.toString())
    for (let n = 0; n < 3; n++) expect((await exchange(port, sent)).status).toBe(200)
    for (const { socket } of held) socket.destroy()
  })

  it('cannot keep it with a byte now and then, while a delivery pauses', async () => {
    const headers = { 'Transfer-Encoding': 'chunked' }
    let held = await fill(headers)
    const large = githubDelivery({ body: `{"a":"${'a'.repeat(20_000)}"}` })
    for (let n = 0; n < 5; n++) {
      const own = { ...Object.fromEntries(large.headers), 'X-GitHub-Delivery': `paused-${n}` }
      const whole = requestText('POST', '/webhook', own, large.body.toString())
      const connection = await connect(relay.port)
      connection.send(whole.slice(0, -10_000))
      await exchange(relay.port, HEALTH)
      // Each of their bytes takes room, and comes after those of the delivery.
      for (let turn = 0; turn < 5; turn++) {
        for (const { send } of held) send('1\r\na\r\n')
        await exchange(relay.port, HEALTH)
      }
      held = [...held, ...(await fill(headers))]
      connection.send(whole.slice(-10_000))
      expect(await connection.answer()).toMatchObject({ status: 200 })
      connection.socket.destroy()
    }
    for (const { socket } of held) socket.destroy()
  })
})
