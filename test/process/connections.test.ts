import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { describe, expect, it } from 'vitest'
import { githubDelivery } from '../kit/delivery.js'
import { connect, exchange, requestText } from '../kit/http.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { memoryOf } from '../kit/processes.js'
import { start } from '../kit/run.js'

const SANDBOX = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
const CONNECT = 'CONNECT example.invalid:443 HTTP/1.1\r\nHost: example.invalid:443\r\n\r\n'
const REFUSED = { status: 400, body: '{"error":"Bad request"}' }

const portOf = (url: string): number => Number(new URL(url).port)

/** Sends CONNECT and resets the connection, before and after the answer; then one more reads its 400. */
async function connectAndReset(port: number) {
  for (let i = 0; i < 20; i++) {
    const connection = await connect(port)
    connection.send(CONNECT)
    if (i % 2 === 0) await connection.answer()
    connection.socket.resetAndDestroy()
    await connection.closed()
  }
  const { status, body } = await exchange(port, CONNECT)
  return { status, body }
}

describe('CONNECT, reset by the client,', () => {
  it('ends neither relay serve nor its sandbox', async () => {
    await using program = start(SANDBOX, { built: true })
    const { url, sandbox } = await program.listening()
    expect(await connectAndReset(portOf(url))).toEqual(REFUSED)
    expect(await connectAndReset(portOf(sandbox))).toEqual(REFUSED)
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    expect((await program.stop()).code).toBe(0)
  })

  it('does not end relay login', async () => {
    const port = await closedPort()
    const env = { RELAY_CLIENT_ID: 'id', RELAY_CLIENT_SECRET: 'secret' }
    await using program = start(['login', '--no-browser', '--port', String(port)], { env, built: true })
    await program.says('Waiting up to 5 minutes')
    expect(await connectAndReset(port)).toEqual(REFUSED)
    expect((await exchange(port, requestText('GET', '/'))).status).toBe(200)
    expect((await program.stop()).code).toBe(130)
  })
})

describeWith('Linux', 'at 128 file descriptors', () => {
  const LIMITED = ['sh', '-c', 'ulimit -n 128; exec "$@"', 'sh']

  it('400 idle connections leave some for commands, and for the sandbox', async () => {
    const flags = ['--sandbox', '--sandbox-port', '0', '--exec', 'push=cat']
    await using here = await place({ host: 'none' })
    const program = await here.serveWith({ wrapper: LIMITED }, ...flags)
    const { url, sandbox } = await program.listening()
    // The sandbox's ping is on its way since the start, and could be closed among the idle connections.
    await program.object({ type: 'delivery', event: 'ping' })
    const own = await connect(portOf(url))
    const idle = [url, sandbox].flatMap((each) =>
      Array.from({ length: 200 }, () => connectTcp(portOf(each), '127.0.0.1').on('error', () => {})),
    )
    await program.says('a new connection was closed at once: 32 are open')
    const { headers, body } = githubDelivery()
    own.send(requestText('POST', '/webhook', Object.fromEntries(headers), body.toString('latin1')))
    const { status } = await own.answer()
    const attempt = await program.object({ type: 'attempt', n: 2 })
    for (const socket of idle) socket.destroy()
    const open = readFileSync(`/proc/${program.pid}/limits`, 'latin1').match(/Max open files +(\d+)/)?.[1]
    expect([open, status, attempt['outcome']]).toEqual(['128', 200, 'succeeded'])
    expect((await program.stop()).code).toBe(0)
  })
})

describeWith('Linux', 'the memory of relay serve', () => {
  it('is raised by 600 held back bodies of 1 MiB by little more than 64 MiB', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serveWith({ built: true })
    const before = memoryOf(program.pid)
    const head = requestText('POST', '/webhook', { 'Content-Length': '1048576' })
    const almost = Buffer.alloc(1_048_575)
    const open = []
    for (let i = 0; i < 600; i++) {
      const connection = await connect(portOf(program.address))
      connection.send(head)
      connection.send(almost)
      open.push(connection)
    }
    // A delivery meanwhile is refused by none of them.
    expect(await program.deliver()).toMatchObject({ status: 200 })
    const raised = memoryOf(program.pid) - before
    process.stderr.write(`600 bodies raised the memory by ${raised.toFixed()} MiB\n`)
    // 64 MiB, and what the garbage collector has not freed yet. Without a bound it is 600 MiB.
    expect(raised).toBeLessThan(250)
    const refused = await Promise.race(open.map((connection) => connection.answer()))
    for (const { socket } of open) socket.resetAndDestroy()
    const { status, body, headers } = refused
    const many = '{"error":"Too many request bodies at once"}'
    expect([status, body, headers['retry-after']]).toEqual([503, many, '5'])
  })
})
