import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Connection, connect, exchange, requestText } from '../helpers/http.js'

const MIB = 1_048_576
const PIECE = Buffer.alloc(65_536)
const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')])

/** The server in a process of its own, so that its memory and event loop are not shared with the clients. */
async function spawnServer() {
  const script = fileURLToPath(new URL('upload-server.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await once(child.stdout, 'data')
  const stop = async (): Promise<void> => {
    child.stdin.end()
    await once(child, 'exit')
  }
  return { port: Number(line), pid: child.pid, [Symbol.asyncDispose]: stop }
}

type Encoding = 'length' | 'chunked'

/** Writes a body of `bytes` no faster than the server reads it, until it is sent or the server closes. */
async function upload(
  connection: Connection,
  bytes: number,
  encoding: Encoding,
  headers = {},
): Promise<void> {
  const framing =
    encoding === 'length' ? { 'Content-Length': String(bytes) } : { 'Transfer-Encoding': 'chunked' }
  const { socket } = connection
  connection.send(requestText('POST', '/body', { ...framing, ...headers }))
  const piece = encoding === 'length' ? PIECE : CHUNK
  for (let sent = 0; sent < bytes && socket.writable; sent += PIECE.byteLength) {
    if (!socket.write(piece)) await drained(socket)
  }
  if (encoding === 'chunked' && socket.writable) connection.send('0\r\n\r\n')
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

/** Runs `task` for each number below `count`, `width` at a time. */
async function inParallel<T>(count: number, width: number, task: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const i = next++
      results[i] = await task(i)
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}

const tally = (items: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1
  return counts
}

/** From 2 to 25 MiB, spread over the clients. */
const sizeOf = (i: number): number => (2 + (i % 24)) * MIB

// Some 10 GB in all: a busy machine takes its time.
describe.each<Encoding>(['length', 'chunked'])(
  '200 clients over the limit, %s',
  { timeout: 120_000 },
  (encoding) => {
    it('on a kept connection all read their 413, and the next request works', async () => {
      await using server = await spawnServer()
      const seen = await inParallel(200, 20, async (i) => {
        const connection = await connect(server.port)
        const [answer] = await Promise.all([connection.answer(), upload(connection, sizeOf(i), encoding)])
        connection.send(requestText('GET', '/ok'))
        const next = await connection.answer()
        connection.socket.destroy()
        return [answer.status, answer.headers['content-type'], answer.body, next.status, next.body].join(' ')
      })
      expect(tally(seen)).toEqual({
        '413 application/json {"error":"Request too large"} 200 {"ok":true}': 200,
      })
    })

    it('with Connection: close all read their 413', async () => {
      await using server = await spawnServer()
      const seen = await inParallel(200, 20, async (i) => {
        const connection = await connect(server.port)
        const sent = upload(connection, sizeOf(i), encoding, { Connection: 'close' })
        const [answer] = await Promise.all([connection.answer(), sent])
        const rest = await connection.closed()
        const { 'content-type': type, connection: kept } = answer.headers
        return [answer.status, type, kept, answer.body, rest].join(' ')
      })
      expect(tally(seen)).toEqual({ '413 application/json close {"error":"Request too large"} ': 200 })
    })
  },
)

describe.runIf(process.platform === 'linux')('memory', { timeout: 120_000 }, () => {
  const anonymousMiB = (pid: number | undefined): number =>
    Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

  it('50 uploads of 100 MB at once raise it by no more than 150 MB', async () => {
    await using server = await spawnServer()
    await exchange(server.port, requestText('GET', '/ok'))
    const before = anonymousMiB(server.pid)
    let peak = before
    const watch = setInterval(() => (peak = Math.max(peak, anonymousMiB(server.pid))), 20)
    await inParallel(50, 50, async (i) => {
      const connection = await connect(server.port)
      await upload(connection, 100_000_000, i % 2 === 0 ? 'length' : 'chunked')
      await connection.closed()
    })
    clearInterval(watch)
    expect(peak - before).toBeLessThan(150_000_000 / MIB)
    expect((await exchange(server.port, requestText('GET', '/ok'))).status).toBe(200)
  })
})
