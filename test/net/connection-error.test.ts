import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { describeConnectionError } from '../../src/net/connection-error.js'
import { portOf } from '../helpers/scripted-server.js'

async function failureOf(url: string): Promise<string> {
  const failed = await fetch(url).then(
    () => new Error('it answered'),
    (error: unknown) => error,
  )
  return describeConnectionError(failed)
}

describe('describeConnectionError', () => {
  it('names what really happens on a connection', async () => {
    const server = createServer((socket) =>
      socket.once('data', () => socket.end('no TLS')).on('error', () => {}),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const place = `127.0.0.1:${portOf(server)}`
    expect(await failureOf(`https://${place}`)).toMatch('no TLS connection')
    server.close()
    await once(server, 'close')
    expect(await failureOf(`http://${place}`)).toBe('connection refused')
    expect(await failureOf('http://nowhere.invalid')).toMatch(/^host (not found|could not be looked up)$/)
  })

  it.each([
    ['CERT_HAS_EXPIRED', 'its certificate has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another host'],
    ['SELF_SIGNED_CERT_IN_CHAIN', /NODE_EXTRA_CA_CERTS/],
  ])('names %s', (code, words) => {
    const cause = Object.assign(new Error('in the words of OpenSSL'), { code })
    expect(describeConnectionError(new TypeError('fetch failed', { cause }))).toMatch(words)
  })

  it.each([
    ['HPE_INVALID_CONSTANT', /^the answer is not HTTP/],
    ['HPE_INVALID_HEADER_TOKEN', /^the answer is not HTTP/],
    ['HPE_HEADER_OVERFLOW', /^the answer has more headers/],
    ['UND_ERR_HEADERS_OVERFLOW', /^the answer has more headers/],
    ['UND_ERR_HEADERS_TIMEOUT', 'no answer in time'],
  ])('puts %s of the HTTP parser into words', (code, words) => {
    const parser = Object.assign(new Error('Parse Error: Expected HTTP/'), { code })
    expect(describeConnectionError(parser)).toMatch(words)
  })

  it('says that what answers does not speak HTTP', async () => {
    // After the request: an answer to none is another error.
    const server = createServer((socket) =>
      socket.once('data', () => socket.end('220 mail.example ESMTP\r\n')).on('error', () => {}),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    expect(await failureOf(`http://127.0.0.1:${portOf(server)}`)).toMatch(/^the answer is not HTTP/)
    server.close()
  })

  it('keeps the text of an unknown error', () => {
    expect(describeConnectionError(new Error('odd'))).toBe('odd')
    expect(describeConnectionError(undefined)).toBe('connection failed')
  })
})
