import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'

// What stands between relay and other machines.

describe('a host that is two seconds away', () => {
  const preload = `--require=${path.resolve('test/kit/slow-connect.cjs')}`

  it.each([
    ['two addresses of one kind', '127.0.0.1,127.0.0.2'],
    ['an address of each kind, of which one leads nowhere', '127.0.0.1,fd00:dead::1'],
    ['the same in the other order', 'fd00:dead::1,127.0.0.1'],
  ])('is reached, with %s', async (_, addresses) => {
    await using target = await receiver(202)
    const env = { NODE_OPTIONS: preload, FAR_ADDRESSES: addresses, FAR_MS: '2000' }
    await using here = await place({ host: 'none' })
    const { port } = new URL(target.url)
    const relay = await here.serveWith({ built: true, env }, '--forward', `http://app.localhost:${port}/`)
    await relay.deliver()
    const attempt = await relay.object({ type: 'attempt' })
    expect(attempt).toMatchObject({ outcome: 'succeeded', status: 202 })
  })
})

describe('a proxy', () => {
  it.each([
    ['HTTP_PROXY', 'http://'],
    ['http_proxy', 'http://a b'],
    ['ALL_PROXY', 'socks5://127.0.0.1:1080'],
  ])('that cannot be used (%s=%s) is named with its variable', async (name, value) => {
    await using here = await place({ host: 'none', env: { [name]: value } })
    const relay = await here.serveWith({ built: true }, '--forward', 'http://app.invalid/')
    await relay.deliver()
    const { error } = await relay.object({ type: 'attempt' })
    expect(error).toMatch(new RegExp(`^${name} (?:is not the address of a proxy|names a SOCKS proxy)`))
  })
})

describe('a wall clock that is set back by an hour', () => {
  it('stops no target that is down, and none that asked for a retry', async () => {
    const preload = `--require=${path.resolve('test/kit/set-back.cjs')}`
    await using target = await receiver()
    await target.down()
    await using busy = await receiver()
    busy.answers(503)
    await using here = await place({ host: 'none' })
    const forward = ['--forward', target.url, '--forward', busy.url]
    const relay = await here.serveWith({ built: true, env: { NODE_OPTIONS: preload } }, ...forward)
    await relay.deliver()
    await relay.object({ type: 'target', state: 'down' })
    await relay.object({ type: 'attempt', status: 503 })
    relay.kill('SIGUSR2')
    await relay.says('the clock was set back')
    await target.up()
    const succeeded = await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 2)
    expect(succeeded).toHaveLength(2)
    expect([target.received.length, busy.received.length]).toEqual([1, 2])
  })
})

describe('a target whose answer HTTP allows, or every client takes, has succeeded', () => {
  /** Answers each request with these bytes, in parts. */
  const speaking = async (...parts: string[]) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const [, length = ''] = /content-length: (\d+)/i.exec(text) ?? []
        if (text.length < text.indexOf('\r\n\r\n') + 4 + Number(length)) return
        text = ''
        for (const part of parts) setImmediate(() => socket.write(Buffer.from(part, 'latin1')))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      url: `http://127.0.0.1:${portOf(server)}/`,
      [Symbol.asyncDispose]: async () => void server.close(),
    }
  }
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

  it.each<[string, ...string[]]>([
    ['100 Continue that nothing asked for', `HTTP/1.1 100 Continue\r\n\r\n${OK}`],
    ['two of them, in parts', 'HTTP/1.1 100 Continue\r\n', '\r\nHTTP/1.1 100 Continue\r\n\r\n', OK],
    ['103 Early Hints', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`],
    ['LF line ends', OK.replaceAll('\r\n', '\n')],
    ['two equal lengths', OK.replace('\r\n\r\n', '\r\nContent-Length: 2\r\n\r\n')],
    ['two equal lengths in one line', OK.replace(': 2', ': 2, 2')],
    [
      'two equal lengths, in parts',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n',
      'Content-Length: 2\r\n\r\nok',
    ],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    ['a folded header', OK.replace('\r\n', '\r\nX-A: one\r\n  two\r\n')],
    ['a space before a colon', OK.replace('\r\n', '\r\nX-A : one\r\n')],
    ['a control character in a header', OK.replace('\r\n', '\r\nX-A: a\u0001b\r\n')],
    ['no reason', OK.replace(' OK', '')],
    ['a reason that is no ASCII', OK.replace('OK', 'Gr\u00fc\u00df')],
    ['HTTP/1.0', OK.replace('1.1', '1.0')],
    ['a 204 with a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok'],
    ['a 204 in chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    [
      'chunks with extensions and trailers',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a="b"\r\nok\r\n0\r\nX-T: 1\r\n\r\n',
    ],
  ])('%s', async (_, ...parts) => {
    await using target = await speaking(...parts)
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--forward', target.url)
    for (const _again of [1, 2]) await relay.deliver()
    const attempts = await relay.objects({ type: 'attempt' }, 2)
    const status = Number(/ (2\d\d)/.exec(parts.join('').replaceAll(/HTTP\/1.1 1\d\d/g, ''))?.[1])
    expect(attempts.map(({ outcome, status: answered, error }) => [outcome, answered, error])).toEqual([
      ['succeeded', status, null],
      ['succeeded', status, null],
    ])
  })
})
