import { once } from 'node:events'
import { createServer, type ServerOptions } from 'node:https'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTcpServer, type Server } from 'node:net'
import { expect, it } from 'vitest'
import { issuedBy, selfSigned } from '../kit/certificate.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import { CLIENT, hostVariables } from '../kit/place.js'

const HOST = 'localhost'
const DAY = 86_400_000
const past = new Date(Date.UTC(2020, 0, 2, 3, 4))
const future = new Date(Date.UTC(2099, 0, 2, 3, 4))
const OLD = 'ALL:@SECLEVEL=0'

/** What OpenSSL and Node call these things, and the ids of threads. */
const RAW = /openssl|error:|routines|ssl3|sslv3|tlsv1|\.c:|[\dA-F]{8}|E[A-Z]{4,}|_|altnames/

describeWith('openssl', 'a failure of TLS', () => {
  const root = selfSigned('root.test')
  const stranger = selfSigned('stranger.test')
  const [good, middle] = [
    issuedBy(root, HOST),
    issuedBy(root, 'old.test', { until: new Date(+past + DAY), from: past, isAuthority: true }),
  ]
  const below = issuedBy(middle, HOST)
  const foreign = issuedBy(stranger, HOST)

  const serving = (options: ServerOptions): Server =>
    createServer({ key: good.key, cert: good.cert, ...options }, (_, response) => response.end())
  const speaking = (bytes: string | Uint8Array): Server =>
    createTcpServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(bytes)))
  const SIGNED = '"server of localhost" (signed by "root.test")'
  const PLAIN = 'its answer is not TLS: set http:// in the address if the server expects plain HTTP'
  const CLIENT_CERTIFICATE = 'it wants a certificate of its client, which relay does not have'
  const COMMON = 'it has no TLS version or cipher in common with relay, which needs TLS 1.2'

  const kinds: Record<string, readonly [Server, words: string, scheme?: 'http']> = {
    expired: [
      serving(issuedBy(root, HOST, { from: past, until: new Date(+past + DAY) })),
      `its certificate has expired: ${SIGNED} was valid until 2020-01-03 03:04 UTC; renew it`,
    ],
    'expired, that of its authority': [
      serving({ key: below.key, cert: below.cert + middle.cert }),
      'its certificate has expired: "server of old.test", which signed it, was valid until 2020-01-03 03:04 UTC',
    ],
    'not valid yet': [
      serving(issuedBy(root, HOST, { from: future, until: new Date(+future + DAY) })),
      `its certificate is not valid yet: ${SIGNED} is valid from 2099-01-02 03:04 UTC: is this machine's clock right?`,
    ],
    'another host': [
      serving(issuedBy(root, 'other.test')),
      'its certificate is for another host: it is for other.test, not for localhost; use such a name',
    ],
    'another host, an address': [
      serving(issuedBy(root, '192.0.2.7')),
      'its certificate is for another host: it is for 192.0.2.7, not for localhost',
    ],
    'signed by itself': [
      serving(selfSigned(HOST)),
      `its certificate is from an unknown authority: "localhost" (signed by itself); put that certificate into ${root.file}, which NODE_EXTRA_CA_CERTS names`,
    ],
    'unknown authority': [
      serving(foreign),
      `its certificate is from an unknown authority: "server of localhost" (signed by "stranger.test"); put the certificate of "stranger.test" into ${root.file}`,
    ],
    'unknown authority, which is sent': [
      serving({ key: foreign.key, cert: foreign.cert + stranger.cert }),
      'its certificate is from an unknown authority: "server of localhost" (signed by "stranger.test"); put the certificate of "stranger.test"',
    ],
    'old TLS': [
      serving({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: OLD }),
      'it speaks only a version of TLS before 1.2',
    ],
    'no common cipher': [serving({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA:@SECLEVEL=0' }), COMMON],
    'a client certificate': [serving({ requestCert: true }), CLIENT_CERTIFICATE],
    'a client certificate, TLS 1.2': [serving({ requestCert: true, maxVersion: 'TLSv1.2' }), COMMON],
    'plain HTTP': [createHttpServer((_, response) => response.end()), PLAIN],
    'another protocol': [
      createTcpServer((socket) => socket.on('error', () => {}).write('SSH-2.0-x\r\n')),
      PLAIN,
    ],
    'a closed connection': [speaking(''), 'connection closed before an answer, while TLS was set up'],
    'a name that it does not serve': [
      speaking(Buffer.from([0x15, 3, 3, 0, 2, 2, 112])),
      'it does not serve the name localhost: check the address',
    ],
    'TLS where plain HTTP is spoken': [
      serving({}),
      'connection closed before an answer: set https:// in the address if the server expects TLS',
      'http',
    ],
  }

  it('of a target says in words which certificate, whose name, and what to set', async () => {
    const forwards: string[] = []
    const expected: Record<string, string> = {}
    for (const [server, words, scheme = 'https'] of Object.values(kinds)) {
      server.on('tlsClientError', () => {}).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const target = `${scheme}://${HOST}:${portOf(server)}/`
      forwards.push('--forward', target)
      expected[target] = words
    }
    await using here = await place({ host: 'none' })
    const env = { NODE_EXTRA_CA_CERTS: root.file }
    const relay = await here.serveWith({ built: true, env }, ...forwards)
    await relay.deliver()
    const attempts = await relay.objects({ type: 'attempt' }, Object.keys(expected).length)
    for (const { target, outcome, error } of attempts) {
      const words = expected[String(target)] ?? ''
      const isRight = String(error).startsWith(words) && outcome === 'unreachable'
      expect([
        target,
        isRight ? words : error,
        RAW.exec(String(error).replaceAll(root.file, '').replaceAll('NODE_EXTRA_CA_CERTS', '')),
      ]).toEqual([target, words, null])
    }
    expect(new Set(attempts.map(({ target }) => target)).size).toBe(forwards.length / 2)
    for (const [server] of Object.values(kinds)) server.close()
  })

  it('of a code host, and of a tunnel, has the same words', async () => {
    const server = serving(selfSigned(HOST))
      .on('tlsClientError', () => {})
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `https://${HOST}:${portOf(server)}`
    await using here = await place({ host: 'none', env: hostVariables('gitea', url, CLIENT) })
    const relay = await here.serveWith({ built: true }, '--tunnel', `${url}/channel`)
    const { why } = await relay.object({ type: 'tunnel', state: 'waiting' })
    const words =
      'its certificate is from an unknown authority: "localhost" (signed by itself); set NODE_EXTRA_CA_CERTS to a file with that certificate'
    expect(why).toContain(words)
    const { out } = await here.run('doctor')
    expect(out).toContain(words)
    server.close()
  })
})
