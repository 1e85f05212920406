import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Connection, connect, exchange, requestText } from '../kit/http.js'
import { describeWith } from '../kit/needs.js'
import { memoryOf } from '../kit/processes.js'
import { type Running, start as startCommand } from '../kit/run.js'

const MIB = 1_048_576
const PIECE = Buffer.alloc(MIB)
const CHUNK = Buffer.concat([Buffer.from('100000\r\n'), PIECE, Buffer.from('\r\n')])

const CLIENTS = 40
/** How many of them at a time. */
const AT_ONCE = 10
/** From 2 to 25 MiB, most of them nearer to the beginning: some 900 MB in all. */
const sizeOf = (i: number): number => Math.round(2 + 23 * (i / (CLIENTS - 1)) ** 6) * MIB

type Framing = 'Content-Length' | 'chunked'

/** Writes a body of `bytes`, whole MiB, as fast as the server reads, until it is sent or the server closes. */
async function upload(connection: Connection, bytes: number, framing: Framing, headers = {}) {
  const { socket } = connection
  const chunked = framing === 'chunked'
  const length = chunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': String(bytes) }
  connection.send(requestText('POST', '/webhook', { ...length, ...headers }))
  for (let sent = 0; sent < bytes && socket.writable; sent += MIB) {
    if (!socket.write(chunked ? CHUNK : PIECE)) await drained(socket)
  }
  if (chunked && socket.writable) connection.send('0\r\n\r\n')
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      socket.off('drain', go).off('close', go)
      resolve()
    }
    socket.on('drain', go).on('close', go)
  })
}

/** Runs `task` for each number below `count`, `width` at a time; how often each result came. */
async function tally(count: number, width: number, task: (i: number) => Promise<string>) {
  const counts: Record<string, number> = {}
  const left = Array.from({ length: count }, (_, i) => i).values()
  const worker = async (): Promise<void> => {
    for (const i of left) {
      const result = await task(i)
      counts[result] = (counts[result] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return counts
}

async function start() {
  const program = startCommand(['serve', '--port', '0', '--json'], { built: true })
  return { program, port: Number(new URL(await program.url()).port) }
}

describe.each<Framing>(['Content-Length', 'chunked'])(
  '40 clients that send relay serve 2 to 25 MB, %s,',
  (framing) => {
    let program: Running
    let port: number
    beforeAll(async () => ({ program, port } = await start()))
    afterAll(() => program.stop())

    it('all read their 413 on a kept connection, and the next request works', async () => {
      const seen = await tally(CLIENTS, AT_ONCE, async (i) => {
        const connection = await connect(port)
        const [answer] = await Promise.all([connection.answer(), upload(connection, sizeOf(i), framing)])
        connection.send(requestText('GET', '/health'))
        const next = await connection.answer()
        connection.socket.destroy()
        return [answer.status, answer.headers['content-type'], answer.body, next.status, next.body].join(' ')
      })
      expect(seen).toEqual({
        '413 application/json {"error":"Request too large"} 200 {"status":"ok"}': CLIENTS,
      })
    })

    it('all read their 413 with Connection: close', async () => {
      const seen = await tally(CLIENTS, AT_ONCE, async (i) => {
        const connection = await connect(port)
        const sent = upload(connection, sizeOf(i), framing, { Connection: 'close' })
        const [answer] = await Promise.all([connection.answer(), sent])
        const rest = await connection.closed()
        const { 'content-type': type, connection: kept } = answer.headers
        return [answer.status, type, kept, answer.body, rest].join(' ')
      })
      expect(seen).toEqual({ '413 application/json close {"error":"Request too large"} ': CLIENTS })
    })
  },
)

describeWith('Linux', 'the memory of relay serve', () => {
  it('is raised by no more than 150 MB by 20 uploads of 50 MB at once', async () => {
    const { program, port } = await start()
    await using _ = program
    await exchange(port, requestText('GET', '/health'))
    const before = memoryOf(program.pid)
    let peak = before
    const watch = setInterval(() => (peak = Math.max(peak, memoryOf(program.pid))), 20)
    await tally(20, 20, async (i) => {
      const connection = await connect(port)
      await upload(connection, 50 * MIB, i % 2 === 0 ? 'Content-Length' : 'chunked')
      return connection.closed()
    })
    clearInterval(watch)
    process.stderr.write(`anonymous memory: ${before.toFixed()} MiB, at most ${peak.toFixed()} MiB\n`)
    expect(peak - before).toBeLessThan(150_000_000 / MIB)
    expect((await exchange(port, requestText('GET', '/health'))).body).toBe('{"status":"ok"}')
  })
})
