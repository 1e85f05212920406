import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { giteaDelivery, githubDelivery } from '../kit/delivery.js'
import { connect, exchange, requestText } from '../kit/http.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { closedPort, listening } from '../kit/ports.js'
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

  /** What a client sends, without waiting, on a connection that then waits for it. */
  const WAITING: Readonly<Record<string, string>> = {
    nothing: '',
    'half a header block': 'POST /webhook HTTP/1.1\r\nHost: loc',
    'half a body': requestText('POST', '/webhook', { 'Content-Length': '10' }, 'half'),
    'half a body that nothing reads': requestText('POST', '/nowhere', { 'Content-Length': '10' }, 'half'),
    'whole requests': requestText('GET', '/health').repeat(3),
    CONNECT,
  }

  it.each(Object.entries(WAITING))(
    '400 connections that keep waiting leave some for commands, deliveries and the sandbox: %s',
    async (what, text) => {
      const flags = ['--sandbox', '--sandbox-port', '0', '--exec', 'push=cat']
      await using here = await place({ host: 'none' })
      const program = await here.serveWith({ wrapper: LIMITED }, ...flags)
      const { url, sandbox } = await program.listening()
      // The sandbox's ping is on its way since the start, and could be closed among these connections.
      await program.object({ type: 'delivery', event: 'ping' })
      const open: Socket[] = []
      const wait = (count: number): void => {
        for (const port of [portOf(url), portOf(sandbox)])
          for (let i = 0; i < count; i++) {
            const socket = connectTcp(port, '127.0.0.1', () => socket.write(text))
            open.push(socket.on('error', () => {}).resume())
          }
      }
      wait(200)
      // Those of CONNECT are refused, and may end before so many are open.
      if (what !== 'CONNECT')
        await program.says('the connection that waited longest was closed at once: 32 are open')
      for (let n = 2; n < 12; n++) {
        const { headers, body } = githubDelivery()
        const lines = Object.fromEntries(headers)
        const sent = requestText('POST', '/webhook', lines, body.toString('latin1'))
        expect((await exchange(portOf(url), sent)).status).toBe(200)
        expect((await exchange(portOf(sandbox), requestText('GET', '/'))).status).toBe(200)
        expect(await program.object({ type: 'attempt', n })).toMatchObject({ outcome: 'succeeded' })
        // Those that were closed come again.
        wait(30)
      }
      for (const socket of open) socket.destroy()
      const limit = readFileSync(`/proc/${program.pid}/limits`, 'latin1').match(/Max open files +(\d+)/)?.[1]
      expect(limit).toBe('128')
      expect((await program.stop()).code).toBe(0)
    },
  )

  it.each([
    ['', ''],
    [' with a delivery behind each', requestText('POST', '/webhook', {}, '{}')],
  ])('sign-ins for which relay waits leave some for deliveries%s', async (_, behind) => {
    let asked = 0
    const host = await listening(
      createServer((request, response) => {
        request.resume()
        // Its token endpoint never answers.
        if (request.method === 'POST') asked++
        else response.end('{"version":"1.22.0"}')
      }),
    )
    await using _host = { [Symbol.asyncDispose]: host.down }
    const url = `http://127.0.0.1:${host.port}`
    const env = {
      RELAY_PROVIDER: 'gitea',
      RELAY_PROVIDER_URL: url,
      RELAY_CLIENT_ID: 'id',
      RELAY_CLIENT_SECRET: 'secret',
    }
    await using here = await place({ host: 'none', env })
    const program = await here.serveWith({ wrapper: LIMITED })
    const texts: string[] = []
    for (let i = 0; i < 40; i++) {
      const begun = await fetch(`${program.address}/auth/provider?userId=u`, { redirect: 'manual' })
      const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state')
      const Cookie = (begun.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
      texts.push(requestText('GET', `/auth/provider/callback?code=x&state=${state}`, { Cookie }) + behind)
    }
    const open = texts.map((text) => {
      const socket = connectTcp(portOf(program.address), '127.0.0.1', () => socket.write(text))
      return socket.on('error', () => {}).resume()
    })
    // As many as there is room for.
    await vi.waitFor(() => expect(asked).toBeGreaterThan(30), { timeout: 20_000 })
    for (let i = 0; i < 10; i++) {
      const { headers, body } = giteaDelivery()
      const sent = requestText('POST', '/webhook', Object.fromEntries(headers), body.toString('latin1'))
      expect(await exchange(portOf(program.address), sent)).toMatchObject({ status: 200 })
    }
    for (const socket of open) socket.destroy()
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
