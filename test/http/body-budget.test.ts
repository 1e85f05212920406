import { describe, expect, it } from 'vitest'
import { BodyBudget, bodyBudgetFor } from '../../src/http/body-budget.js'
import { type Connection, connect, exchange, requestText } from '../helpers/http.js'
import { startEdge } from './edge.js'

const BUDGET = 100_000
const REFUSED = { status: 503, body: '{"error":"Too many request bodies at once"}', retry: '5' }
const posting = (bytes: number): string => requestText('POST', '/body', { 'Content-Length': String(bytes) })

async function answerOf(connection: Connection) {
  const { status, body, headers } = await connection.answer()
  return { status, body, retry: headers['retry-after'] }
}

/** A connection on which all but the last of `of` body bytes have arrived. */
async function heldBack(port: number, of: number): Promise<Connection> {
  const connection = await connect(port)
  connection.send(posting(of))
  connection.send(Buffer.alloc(of - 1))
  // Answered after the bytes above have been read.
  await exchange(port, requestText('GET', '/ok'))
  return connection
}

describe('all bodies being read at the same time', () => {
  it('have a limit: the largest gets 503 with Retry-After, the others their answers', async () => {
    await using edge = await startEdge({ bodyBudget: BUDGET })
    const large = await heldBack(edge.port, 60_000)
    const small = await heldBack(edge.port, 30_000)
    const third = await heldBack(edge.port, 30_000)
    large.send('a')
    expect(await answerOf(large)).toEqual(REFUSED)
    for (const connection of [small, third]) {
      connection.send('a')
      expect(await answerOf(connection)).toMatchObject({ status: 200 })
    }
    // Its body was read to the end, so the connection can be used again.
    large.send(requestText('GET', '/ok'))
    expect(await answerOf(large)).toMatchObject({ status: 200 })
    for (const { socket } of [large, small, third]) socket.destroy()
    expect(edge.lines).toEqual(['warn POST /body was answered 503: Too many request bodies at once'])
  })

  it('return their bytes to the budget however they end', async () => {
    await using edge = await startEdge({ bodyBudget: BUDGET })
    for (let round = 0; round < 5; round++) {
      const ends: ((connection: Connection) => unknown)[] = [
        ({ socket }) => socket.resetAndDestroy(),
        ({ socket }) => socket.end(),
        (connection) => connection.send('a'),
      ]
      for (const end of ends) {
        const connection = await heldBack(edge.port, 60_000)
        end(connection)
        if (end === ends[2]) await connection.answer()
        connection.socket.destroy()
        await connection.closed()
      }
    }
    const { status } = await exchange(edge.port, requestText('POST', '/body', {}, 'a'.repeat(90_000)))
    expect({ status, lines: edge.lines }).toEqual({ status: 200, lines: [] })
  })

  it('count the overhead of each chunk, which is more than one byte', async () => {
    await using edge = await startEdge({ bodyBudget: BUDGET })
    const connection = await connect(edge.port)
    connection.send(requestText('POST', '/body', { 'Transfer-Encoding': 'chunked' }))
    connection.send(`${'1\r\na\r\n'.repeat(300)}0\r\n\r\n`)
    expect(await answerOf(connection)).toEqual(REFUSED)
    connection.socket.destroy()
  })

  it('do not count discarded bytes', async () => {
    await using edge = await startEdge({ bodyBudget: BUDGET })
    const held = await heldBack(edge.port, 90_000)
    const { status } = await exchange(edge.port, requestText('POST', '/nowhere', {}, 'a'.repeat(400_000)))
    held.send('a')
    expect([status, (await held.answer()).status]).toEqual([404, 200])
    held.socket.destroy()
  })
})

describe('a budget', () => {
  it('is 64 MiB, or four of the largest bodies', () => {
    expect([bodyBudgetFor(1), bodyBudgetFor(1_048_576), bodyBudgetFor(26_214_400)]).toEqual([
      67_108_864, 67_108_864, 104_857_600,
    ])
  })

  it('gets the bytes of a body back once', () => {
    const budget = new BodyBudget(BUDGET)
    const [one, other] = [budget.open(() => {}), budget.open(() => {})]
    one.add(1_000)
    other.add(2_000)
    one.release()
    one.release()
    expect(budget.used).toBe(2_512)
  })
})
