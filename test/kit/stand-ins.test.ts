import { once } from 'node:events'
import { connect as connectTcp, createServer } from 'node:net'
import { startSandbox } from 'webhook-relay/testing'
import { describe, expect, it } from 'vitest'
import { ACCESS_TOKEN, authorizationServer, OAUTH_CLIENT } from './authorization-server.js'
import { canary } from './canary.js'
import { Changes } from './changes.js'
import { begin, finish, githubDelivery, type Header, post } from './delivery.js'
import { exchange, halfClosed, refusedByParser, requestText } from './http.js'
import { parseMetrics } from './metrics.js'
import { connectProxy, stalling } from './network.js'
import { beginSignIn } from './pages.js'
import { hostVariables, place } from './place.js'
import { closedPort, portOf } from './ports.js'
import { receiver, valuesOf } from './receiver.js'
import { gosmee, smee } from './smee.js'
import { sentSecrets, tapRequests } from './tap.js'

const portIn = (url: string): number => Number(new URL(url).port)
const statusOf = async (url: string): Promise<number> => (await fetch(url)).status

describe('a receiver', () => {
  it('keeps what it was sent, as it was sent', async () => {
    await using target = await receiver()
    const headers: Header[] = [
      ['X-Twice', 'one'],
      ['x-twice', 'two'],
    ]
    const body = Buffer.from([0, 255, 13, 10])
    expect(await post(`${target.url}/hook?a=b`, { headers, body })).toMatchObject({ status: 200, body: '' })
    const [request] = target.received
    expect(request).toMatchObject({ method: 'POST', path: '/hook?a=b', body })
    expect(request?.headers.slice(1, 3)).toEqual(headers)
    expect(request && valuesOf(request, 'X-TWICE')).toEqual(['one', 'two'])
  })

  it('answers in turn, then as it was told at first', async () => {
    await using target = await receiver(({ path }) => ({ body: { path } }))
    target.answers(503, { status: 429, headers: { 'retry-after': '1' } }, async () => 202, 'reset')
    expect(await statusOf(target.url)).toBe(503)
    expect((await fetch(target.url)).headers.get('retry-after')).toBe('1')
    expect(await statusOf(target.url)).toBe(202)
    await expect(fetch(target.url)).rejects.toThrow('fetch failed')
    const answer = await fetch(`${target.url}/a`)
    expect([answer.headers.get('content-type'), await answer.json()]).toEqual([
      'application/json',
      { path: '/a' },
    ])
  })

  it('stalls after its headers, and hangs', async () => {
    await using target = await receiver({ stalls: true })
    const answer = await fetch(target.url)
    expect(answer.status).toBe(200)
    target.answers('hang')
    const hanging = fetch(target.url)
    await target.has(2)
    await target.down()
    await expect(hanging).rejects.toThrow('fetch failed')
    await expect(answer.text()).rejects.toThrow('terminated')
  })

  it('rejects with what it saw when a request does not come', async () => {
    await using target = await receiver()
    await fetch(`${target.url}/here`, { method: 'POST', body: 'hello' })
    await expect(target.has(2, 50)).rejects.toThrow(
      'no 2 requests within 50 ms; there is: 1\nPOST /here hello',
    )
  })

  it('is gone while it is down, and comes back to its port', async () => {
    await using target = await receiver()
    await target.down()
    await expect(fetch(target.url)).rejects.toThrow('fetch failed')
    await target.up()
    expect([await statusOf(target.url), target.connections]).toEqual([200, 1])
    const port = await closedPort()
    await using given = await receiver(200, { port })
    expect(given.url).toBe(`http://127.0.0.1:${port}`)
  })

  it('throws what its answer threw', async () => {
    const target = await receiver(() => {
      throw new Error('no such path')
    })
    await expect(fetch(target.url)).rejects.toThrow('fetch failed')
    await expect(target[Symbol.asyncDispose]()).rejects.toThrow('no such path')
  })
})

describe('a canary', () => {
  const SECRET = 'canary <secret> of 24'
  const searched = (text: string, where = 'output') => {
    const one = canary()
    one.secret('token', SECRET)
    one.text(where, text)
    return () => one.check(['token'])
  }

  it('passes where it searched and found nothing', () => {
    expect(searched('all is well')).not.toThrow()
  })

  it.each([
    ['as it is', `Bearer ${SECRET}.`],
    ['in an address', `/?a=${encodeURIComponent(SECRET)}`],
    ['in a form', String(new URLSearchParams({ token: SECRET }))],
    ['in JSON', JSON.stringify({ token: SECRET })],
  ])('finds a secret %s', (_, text) => {
    expect(searched(text)).toThrow('a secret is where it may not be: token in output')
  })

  it('allows what a command was run for', () => {
    const one = canary()
    one.secret('token', SECRET)
    one.heard({ out: `${SECRET}\n`, err: 'done' }, SECRET)
    expect(() => one.check(['token'])).not.toThrow()
    one.heard({ out: '', err: SECRET }, SECRET)
    expect(() => one.check(['token'])).toThrow('token in output')
  })

  it('fails where nothing was searched', () => {
    expect(() => canary().check([])).toThrow('nothing was searched: 0 secrets, 0 places')
    expect(searched('\n')).toThrow('empty: output')
    const one = canary()
    one.text('output', 'all is well')
    expect(() => one.check([])).toThrow('nothing was searched')
    one.secret('token', SECRET)
    expect(() => one.check(['token', 'key'])).toThrow('the secrets to look for are token, not key, token')
    expect(() => one.secret('code', 'short')).toThrow('no secret to look for: code has 5 characters')
  })

  it('knows the secrets that a code host was sent or gave', async () => {
    await using sandbox = await startSandbox({ lifetimes: { access: 60, refresh: 60 } })
    using tap = tapRequests(portIn(sandbox.url))
    const authorization = `Bearer ${await sandbox.token()}`
    await fetch(`${sandbox.url}/api/v3/user`, { headers: { authorization } })
    expect([...sentSecrets(tap.requests).values()]).toEqual([
      'client secret',
      'access token',
      'refresh token',
    ])
  })
})

describe('a network', () => {
  /** A server that sends back what it gets. */
  async function echo() {
    const server = createServer((socket) => void socket.pipe(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { port: portOf(server), [Symbol.dispose]: () => void server.close() }
  }

  async function client(port: number) {
    const socket = connectTcp(port, '127.0.0.1').setEncoding('utf8')
    let got = ''
    const changes = new Changes(() => got)
    socket.on('data', (text: string) => {
      got += text
      changes.changed()
    })
    await once(socket, 'connect')
    const until = (text: string): Promise<void> => changes.until(() => got === text, text)
    return { socket, until, got: () => got, [Symbol.dispose]: () => void socket.destroy() }
  }

  it('holds back what passes, and loses nothing', async () => {
    using server = await echo()
    await using network = await stalling(server.port)
    using one = await client(network.port)
    one.socket.write('a')
    await one.until('a')
    network.stall()
    one.socket.write('b')
    using other = await client(network.port)
    other.socket.write('c')
    network.stall()
    one.socket.write('d')
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect([one.got(), other.got(), one.socket.closed]).toEqual(['a', '', false])
    network.resume()
    await one.until('abd')
    await other.until('c')
    one.socket.end()
    await once(one.socket, 'close')
  })

  it('forgets a connection without closing it', async () => {
    using server = await echo()
    await using network = await stalling(server.port)
    using one = await client(network.port)
    one.socket.write('a')
    await one.until('a')
    network.stall()
    network.forget()
    network.resume()
    one.socket.write('b')
    using other = await client(network.port)
    other.socket.write('c')
    await other.until('c')
    expect([one.got(), one.socket.closed]).toEqual(['a', false])
  })

  it('passes a half-closed connection and an answer on', async () => {
    await using target = await receiver({ body: 'hello' })
    await using network = await stalling(portIn(target.url))
    const answer = await halfClosed(network.port, requestText('GET', '/', { Connection: 'close' }))
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*hello/)
  })

  it('has a proxy that leads to one server, unless it is closed', async () => {
    await using target = await receiver({ body: 'hello' })
    let open = false
    await using proxy = await connectProxy(target.url, () => open)
    const ask = 'CONNECT code.invalid:443 HTTP/1.1\r\nHost: code.invalid:443\r\n\r\n'
    expect(await halfClosed(portIn(proxy.url), ask)).toMatch(/^HTTP\/1\.1 407 /)
    open = true
    using through = await client(portIn(proxy.url))
    through.socket.write(ask)
    await through.until('HTTP/1.1 200 OK\r\n\r\n')
    through.socket.write(requestText('GET', '/', { Connection: 'close' }))
    await once(through.socket, 'close')
    expect(through.got()).toContain('hello')
    expect(proxy.asked).toEqual(['code.invalid:443'])
  })
})

describe('a tunnel server', () => {
  const listen = async (url: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(url, { headers: { accept: 'text/event-stream', ...headers } })
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
    let got = ''
    return {
      status: answer.status,
      async until(text: string): Promise<string> {
        while (!got.includes(text)) {
          const part = await reader?.read()
          if (!part || part.done) throw new Error(`ended after ${got}`)
          got += part.value
        }
        return got
      },
      close: () => reader?.cancel(),
    }
  }

  it('of smee parses a body, numbers from 0, and refuses what smee.io refuses', async () => {
    await using server = await smee()
    const events = await listen(server.channel)
    await server.listening(1)
    expect(await events.until('ready')).toMatch(/^id: 0\nevent: ready\ndata: \{\}\n\n/)
    const send = async (given: Parameters<typeof githubDelivery>[0]) =>
      (await post(server.channel, githubDelivery(given))).status
    expect(await send({ body: '{ "a": 1.0 }' })).toBe(200)
    const got = await events.until('"body"')
    expect(got).toMatch(/\nid: 1\ndata: \{.*"body":\{"a":1\}/)
    expect(got).toContain('"via":"1.1 vegur"')
    expect(await send({ type: 'text/plain' })).toBe(415)
    expect(await send({ body: `"${'x'.repeat(1_048_576)}"` })).toBe(413)
    expect(await send({ id: 'none' })).toBe(400)
    expect(await send({ body: '{"__proto__":1}' })).toBe(400)
    expect(await send({ set: { 'X-Hub-Signature-256': 'sha256=0' } })).toBe(400)
    const created = await fetch(`${server.url}/new`, { redirect: 'manual' })
    expect([created.status, created.headers.get('location')]).toEqual([
      307,
      expect.stringContaining(server.url),
    ])
    const stream = await server.stream(0)
    server.hangUp()
    await stream.closed
    await expect(events.until('more')).rejects.toThrow('ended')
  })

  it('of gosmee keeps the bytes, and has a history with Redis', async () => {
    await using server = await gosmee({ stream: 2 })
    const events = `${server.url}/events/${server.channel.split('/').at(-1)}`
    for (const n of [1, 2, 3]) {
      const answer = await post(server.channel, githubDelivery({ body: `{ "n": ${n} }` }))
      expect(answer.status).toBe(202)
    }
    expect((await listen(events, { 'last-event-id': 'none' })).status).toBe(400)
    const listening = await listen(events, { 'last-event-id': '1-0' })
    const got = await listening.until(Buffer.from('{ "n": 3 }').toString('base64'))
    expect(got).toMatch(/"connected"[^]*"ready"[^]*event: gosmee-gap\n[^]*\nid: \d+-1\n[^]*\nid: \d+-2\n/)
    await listening.close()
  })
})

describe('relay', () => {
  it('is sent bytes that an HTTP client would not send, and a body when it asks for it', async () => {
    await using here = await place()
    const relay = await here.serve()
    const port = portIn(relay.address)
    for (const { name, request, status, error } of refusedByParser('/webhook').slice(0, 3))
      expect([name, await exchange(port, request)]).toEqual([
        name,
        expect.objectContaining({ status, body: JSON.stringify({ error }) }),
      ])
    const delivery = githubDelivery()
    expect(await finish(await begin(`${relay.address}/webhook`, delivery), delivery)).toBe(200)
  })

  it('signs in at a scripted authorization server', async () => {
    await using server = await authorizationServer()
    await using here = await place({ host: 'none', env: hostVariables('github', server.url, OAUTH_CLIENT) })
    const relay = await here.serve()
    const { authorize, cookie } = await beginSignIn(`${relay.address}/auth/github?userId=ada`)
    const callback = `${relay.address}/auth/github/callback?${String(server.approve(authorize))}`
    const back = await fetch(callback, { headers: { cookie }, redirect: 'manual' })
    expect([back.status, back.headers.get('location')]).toEqual([
      302,
      `${relay.address}/?auth=success&userId=ada`,
    ])
    expect((await here.run('token')).out).toBe(`${ACCESS_TOKEN}\n`)
    expect([server.requests.length, server.refused]).toEqual([1, undefined])
  })
})

describe('metrics', () => {
  it('are read from their text', () => {
    const text = [
      '# HELP a A gauge.',
      '# TYPE a gauge',
      'a 1.5',
      '',
      '# TYPE b counter',
      'b{target="x, \\"y\\"}",status="failed"} 2',
      '# TYPE c histogram',
      'c_bucket{le="+Inf"} 3',
      'c_sum 0.1',
      'c_count 3',
      '# TYPE d gauge',
      'd{a="1"} Nan',
      'd{a="2"} -Inf',
      '# TYPE e gauge',
      '',
    ].join('\n')
    expect(parseMetrics(text)).toEqual({
      a: { type: 'GAUGE', values: { '': 1.5 } },
      b: { type: 'COUNTER', values: { 'target=x, "y"} status=failed': 2 } },
      c: { type: 'HISTOGRAM', values: {} },
      c_bucket: { type: 'HISTOGRAM', values: { 'le=+Inf': 3 } },
      c_sum: { type: 'HISTOGRAM', values: { '': 0.1 } },
      c_count: { type: 'HISTOGRAM', values: { '': 3 } },
      d: { type: 'GAUGE', values: { 'a=1': Number.NaN, 'a=2': -Infinity } },
      e: { type: 'GAUGE', values: {} },
    })
  })

  it.each([
    ['no end of the last line', '# TYPE a gauge\na 1', 'no end'],
    ['no type', 'a 1\n', 'no sample: a 1'],
    ['no number', '# TYPE a gauge\na x\n', 'no sample: a x'],
    ['labels without quotes', '# TYPE a gauge\na{b=c} 1\n', 'no sample'],
    ['a value twice', '# TYPE a gauge\na 1\na 2\n', 'a second value: a 2'],
  ])('are not read from a text with %s', (_, text, error) => {
    expect(() => parseMetrics(text)).toThrow(error)
  })
})
