import { once } from 'node:events'
import { array, assert, asyncProperty, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { githubDelivery, SECRET, sign } from '../kit/delivery.js'
import { connect, type Connection, exchange, requestText } from '../kit/http.js'
import { place } from '../kit/place.js'
import { shared } from './fixture.js'

const MIB = 1_048_576
const HEALTH = requestText('GET', '/health')
const ACCEPTED = { status: 200, type: 'application/json', body: '{"ok":true}' }
const TOO_LARGE = { status: 413, type: 'application/json', body: '{"error":"Request too large"}' }

const here = shared(() => place({ host: 'none' }))
const relay = shared(() => here.serve())

/** The head of a request with a signed body, whose length or transfer encoding `more` says. */
function head(body: Uint8Array, more: Readonly<Record<string, string>>): string {
  const { headers } = githubDelivery({ body })
  return requestText('POST', '/webhook', { ...Object.fromEntries(headers), ...more })
}

const CHUNKED = { 'Transfer-Encoding': 'chunked' }
const lengthOf = (bytes: number): Record<string, string> => ({ 'Content-Length': String(bytes) })

/** A JSON string that has so many bytes. */
function json(bytes: number): Buffer {
  return Buffer.from(`"${'a'.repeat(bytes - 2)}"`)
}

function chunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

/** A body in chunks of up to 64 KiB. */
function chunked(body: Buffer): Uint8Array {
  const parts = Array.from({ length: Math.ceil(body.byteLength / 65_536) }, (_, i) =>
    chunk(body.subarray(i * 65_536, (i + 1) * 65_536)),
  )
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

async function answerOf(connection: Connection) {
  const { status, headers, body } = await connection.answer()
  return { status, type: headers['content-type'], body }
}

describe('the limit of a body', () => {
  it.each([
    [MIB, ACCEPTED],
    [MIB + 1, TOO_LARGE],
    [4 * MIB, TOO_LARGE],
  ])('%i bytes, with Content-Length and chunked, on one kept connection', async (bytes, expected) => {
    using connection = await connect(relay.port)
    const body = json(bytes)
    connection.send(head(body, lengthOf(bytes)))
    connection.send(body)
    expect(await answerOf(connection)).toEqual(expected)
    connection.send(head(body, CHUNKED))
    connection.send(chunked(body))
    expect(await answerOf(connection)).toEqual(expected)
    connection.send(head(json(3), lengthOf(3)))
    connection.send(json(3))
    expect(await answerOf(connection)).toEqual(ACCEPTED)
  })
})

describe('the bytes of a body', () => {
  it('are those that were sent, in any chunks: their signature matches', async () => {
    const pieces = array(uint8Array({ minLength: 1, maxLength: 20_000 }), { maxLength: 5 })
    await assert(
      asyncProperty(pieces, async (parts) => {
        using connection = await connect(relay.port)
        const send = async (signature: string): Promise<string> => {
          const signed = { ...CHUNKED, 'X-Hub-Signature-256': signature }
          connection.send(head(Buffer.of(), signed))
          for (const part of parts) connection.send(chunk(part))
          connection.send('0\r\n\r\n')
          return (await connection.answer()).body
        }
        const bytes = Buffer.concat(parts)
        // Bytes that happen to be JSON are stored.
        expect(['{"error":"Invalid event"}', '{"ok":true}']).toContain(await send(sign(SECRET, bytes)))
        const altered = Buffer.concat([bytes, Buffer.of(0)])
        expect(await send(sign(SECRET, altered))).toBe('{"error":"Invalid signature"}')
      }),
      { numRuns: 30 },
    )
  })
})

describe('a slow or impatient client', () => {
  it('that disconnects mid-body leaves nothing behind', async () => {
    for (const bytes of [10, 2 * MIB]) {
      for (const more of [lengthOf(3 * MIB), CHUNKED]) {
        using connection = await connect(relay.port)
        connection.send(head(json(bytes), more))
        connection.send(more === CHUNKED ? chunked(json(bytes)).subarray(0, -5) : json(bytes))
        await exchange(relay.port, HEALTH)
        connection.socket.resetAndDestroy()
        await once(connection.socket, 'close')
      }
    }
    expect((await exchange(relay.port, HEALTH)).status).toBe(200)
    expect(relay.err).not.toContain('error:')
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (bytes: number, path = '/webhook') =>
    requestText('POST', path, { ...lengthOf(bytes), Expect: '100-continue' })

  it('gets 100 Continue when the body is wanted', async () => {
    using connection = await connect(relay.port)
    const body = json(MIB)
    for (let round = 0; round < 2; round++) {
      connection.send(head(body, { ...lengthOf(MIB), Expect: '100-continue' }))
      expect((await connection.answer()).status).toBe(100)
      connection.send(body)
      expect(await answerOf(connection)).toEqual(ACCEPTED)
    }
  })

  it.each([
    ['too large', expecting(MIB + 1), 413, 'Request too large'],
    ['for an unknown path', expecting(10, '/nowhere'), 404, 'Not found'],
  ])('is refused before the body is sent: %s', async (_name, request, status, error) => {
    using connection = await connect(relay.port)
    connection.send(request)
    const answer = await connection.answer()
    const refused = [status, JSON.stringify({ error }), 'close']
    expect([answer.status, answer.body, answer.headers['connection']]).toEqual(refused)
    expect(await connection.closed()).toBe('')
  })
})

describe('a refused request’s body is read before the answer', () => {
  it.each([
    ['an unknown path', '/nowhere', {}, 404],
    ['a wrong method', '/health', {}, 405],
    ['a foreign Host', '/webhook', { Host: 'evil.example' }, 403],
    ['a body over the limit', '/webhook', {}, 413],
  ])('%s', async (_name, path, headers, status) => {
    using connection = await connect(relay.port)
    for (let round = 0; round < 3; round++) {
      connection.send(requestText('POST', path, { ...lengthOf(8 * MIB), ...headers }))
      connection.send(Buffer.alloc(8 * MIB))
      expect((await connection.answer()).status).toBe(status)
    }
    connection.send(HEALTH)
    expect((await connection.answer()).body).toBe('{"status":"ok"}')
  })

  it('up to 32 MiB: then the answer comes while the client still writes, and the connection is closed', async () => {
    using connection = await connect(relay.port)
    connection.send(requestText('POST', '/webhook', lengthOf(100 * MIB)))
    connection.send(Buffer.alloc(33 * MIB))
    const { status, headers, body } = await connection.answer()
    expect([status, headers['connection'], body]).toEqual([413, 'close', '{"error":"Request too large"}'])
    await connection.closed()
    expect((await exchange(relay.port, HEALTH)).status).toBe(200)
  })
})

describe('all bodies being read at the same time', () => {
  const REFUSED = { status: 503, body: '{"error":"Too many request bodies at once"}', retry: '5' }
  const UNSIGNED = { status: 401, body: '{"error":"Invalid signature"}', retry: undefined }
  const large = shared(() => here.serve('--max-body', String(16 * MIB), '--profile', 'large'))

  /** A connection on which all but the last byte of a body without a signature have arrived. */
  async function heldBack(bytes: number): Promise<Connection> {
    const connection = await connect(large.port)
    connection.send(requestText('POST', '/webhook', lengthOf(bytes)))
    await new Promise((resolve) => connection.socket.write(Buffer.alloc(bytes - 1), resolve))
    // Answered after the last of them have been read.
    await exchange(large.port, HEALTH)
    return connection
  }

  /** The same of several bodies, of so many MiB. */
  async function allHeldBack(...sizes: readonly number[]): Promise<Connection[]> {
    const held: Connection[] = []
    for (const size of sizes) held.push(await heldBack(size * MIB))
    return held
  }

  async function refusal(connection: Connection) {
    const { status, body, headers } = await connection.answer()
    return { status, body, retry: headers['retry-after'] }
  }

  it('have a limit of 64 MiB: one gets 503 with Retry-After, the others their answers', async () => {
    const held = await allHeldBack(16, 16, 8, 16)
    // Bytes that are not kept do not count.
    const discarded = await exchange(large.port, requestText('POST', '/nowhere', {}, 'a'.repeat(16 * MIB)))
    expect(discarded.status).toBe(404)
    held.push(await heldBack(16 * MIB))
    for (const connection of held) connection.send('a')
    const answers = await Promise.all(held.map(refusal))
    const refused = answers.findIndex(({ status }) => status === 503)
    expect(answers.toSpliced(refused, 1)).toEqual([UNSIGNED, UNSIGNED, UNSIGNED, UNSIGNED])
    expect(answers[refused]).toEqual(REFUSED)
    // Its body was read to the end, so the connection can be used again.
    held[refused]?.send(HEALTH)
    expect(await held[refused]?.answer()).toMatchObject({ status: 200 })
    for (const { socket } of held) socket.destroy()
  })

  it('return their bytes to the budget however they end', async () => {
    const answered = async (connection: Connection): Promise<void> => {
      connection.send('a')
      expect(await refusal(connection)).toEqual(UNSIGNED)
    }
    const ends = [
      ({ socket }: Connection) => socket.resetAndDestroy(),
      ({ socket }: Connection) => socket.end(),
      answered,
    ]
    for (const end of [...ends, ...ends]) {
      const held = await allHeldBack(16, 16, 8)
      for (const connection of held) {
        await end(connection)
        connection.socket.destroy()
        await connection.closed()
      }
    }
    using last = await heldBack(16 * MIB)
    await answered(last)
  })

  it('do not count what was refused, although its client still sends it', async () => {
    const refused: Connection[] = []
    for (let i = 0; i < 4; i++) {
      const connection = await connect(large.port)
      connection.send(requestText('POST', '/webhook', CHUNKED))
      const body = chunked(Buffer.alloc(17 * MIB)).subarray(0, -5)
      await new Promise((resolve) => connection.socket.write(body, resolve))
      await exchange(large.port, HEALTH)
      refused.push(connection)
    }
    using last = await heldBack(16 * MIB)
    last.send('a')
    expect(await refusal(last)).toEqual(UNSIGNED)
    for (const { socket } of refused) socket.destroy()
  })

  it('count the overhead of each chunk, which is more than one byte', async () => {
    using connection = await connect(large.port)
    connection.send(requestText('POST', '/webhook', CHUNKED))
    connection.send(`${'1\r\na\r\n'.repeat(150_000)}0\r\n\r\n`)
    expect(await refusal(connection)).toEqual(REFUSED)
  })
})
