import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { portOf } from '../kit/ports.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const including = (line: string): string => OK.replace('\r\n', `\r\n${line}\r\n`)
const chunked = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${more}\r\n${body}`

/** Bytes that HTTP allows, or that clients take, with the status and the body that they mean; and whether the server then closes. */
const TAKEN: Readonly<
  Record<string, readonly [bytes: string, status?: number, body?: string, closes?: 'closes']>
> = {
  'the protocol in lower case': [OK.replace('HTTP', 'http')],
  'another minor version': [OK.replace('1.1', '1.2')],
  'no minor version': [OK.replace('1.1', '1')],
  'HTTP/2 in a line of text': [OK.replace('1.1', '2')],
  'spaces around the status': [OK.replace(' 200 OK', '   200  OK ')],
  'a tab before the status': [OK.replace(' 200', '\t200')],
  'blank lines first': [`\r\n\r\n${OK}`],
  'line ends of both kinds': [OK.replace('OK\r\n', 'OK\n').replace('\r\n\r\n', '\n\r\n')],
  'LF alone, folded': ['HTTP/1.1 200 OK\nX: 1\n\ttwo\nContent-Length: 2\n\nok'],
  'a line without a colon': [including('nonsense')],
  'a header without a name': [including(': value')],
  'a name with a space': [including('X Y: value')],
  'a name that is no ASCII': [including('X\u00fc: value')],
  'a value with NUL': [including('X: a\0b')],
  'bytes above 0x7f': [including('X: \u00fc\u00ff')],
  'a length with a sign': [OK.replace(': 2', ': +2')],
  'a length with spaces': [OK.replace(': 2', ':  2 ')],
  'three equal lengths': [including('Content-Length: 2\r\nContent-Length: 2')],
  'no length': ['HTTP/1.1 200 OK\r\n\r\nok', 200, 'ok', 'closes'],
  'HTTP/1.0 without a length': ['HTTP/1.0 200 OK\r\n\r\nok', 200, 'ok', 'closes'],
  'Connection: close without a length': [
    'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok',
    200,
    'ok',
    'closes',
  ],
  'a status line alone': ['HTTP/1.1 202 Accepted\n', 202, '', 'closes'],
  'headers without their end': ['HTTP/1.1 202 Accepted\r\nX: 1\r\nY:', 202, '', 'closes'],
  'bytes after the body': [`${OK}more than it said`],
  'the coding in capitals': [chunked('2\r\nok\r\n0\r\n\r\n').replace('chunked', 'CHUNKED')],
  'chunks twice': [chunked('2\r\nok\r\n0\r\n\r\n', 'Transfer-Encoding: chunked\r\n')],
  'chunks with spaces and zeros': [chunked('0002 \r\nok\r\n000\r\n\r\n')],
  'chunks without the last': [chunked('2\r\nok\r\n'), 200, 'ok', 'closes'],
  'several chunks, one with an extension': [chunked('1;x=y\r\no\r\n1\r\nk\r\n0\r\nX-Trailer: 1\r\n\r\n')],
  'all interim statuses': [
    `${[100, 102, 103, 199].map((n) => `HTTP/1.1 ${n} x\r\nX: 1\r\n\r\n`).join('')}${OK}`,
  ],
  'an interim status before two lengths': [`HTTP/1.1 100 Continue\n\n${including('Content-Length: 2')}`],
  'headers of 60 KiB': [including(`X: ${'x'.repeat(60_000)}`)],
  'a thousand headers': [including(Array.from({ length: 1000 }, (_, n) => `X-${n}: y`).join('\r\n'))],
  'headers of 8 KiB, of which one is malformed': [including(`X: ${'x'.repeat(8000)}\r\nnonsense`)],
  'a 204 with a length': ['HTTP/1.1 204 x\r\nContent-Length: 2\r\n\r\nok', 204, ''],
  'a status that has no name': [OK.replace('200 OK', '299'), 299],
}

const statusLine = (status: string): string => `HTTP/1.1 ${status} x\r\nContent-Length: 0\r\n\r\n`
const NOT = 'its answer is not HTTP/1.1'

/** What no client takes for an answer to this request, and why. */
const REFUSED: Readonly<Record<string, readonly [bytes: string, error: string]>> = {
  'a mail server': ['220 mail.example ESMTP\r\n', `${NOT}, but mail or FTP: check the address and the port`],
  'an SSH server': ['SSH-2.0-OpenSSH_9.2\r\n', `${NOT}, but SSH: check the address and the port`],
  TLS: ['\x15\x03\x03\0\x02\x02\x46', `${NOT}, but TLS: set https:// in the address`],
  'HTTP/2': ['\0\0\0\x04\0\0\0\0\0', `${NOT}, but HTTP/2: check the address and the port`],
  'text alone': ['hello\r\n', `${NOT}: check the address and the port`],
  'a status that is none': [
    'HTTP/1.1 twenty OK\r\n\r\n',
    `${NOT}, its first lines are not well formed: check the address and the port`,
  ],
  ...Object.fromEntries(
    ['20', '1000', '2000', '', '-1', '2O0', '099\u00b9'].map((status) => [
      `the status ${status}`,
      [
        statusLine(status),
        `${NOT}, its first lines are not well formed: check the address and the port`,
      ] as const,
    ]),
  ),
  ...Object.fromEntries(
    ['000', '001', '099'].map((status) => [
      `the status ${status}`,
      [
        statusLine(status),
        `${NOT}, since there is no status ${status}: check the address and the port`,
      ] as const,
    ]),
  ),
  'another protocol from now on': [
    'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    `${NOT}, it changes to another protocol: check the address and the port`,
  ],
  'headers without an end': [
    `HTTP/1.1 200 OK\r\n${`X: ${'y'.repeat(1000)}\r\n`.repeat(300)}`,
    `${NOT}, its headers have more than 256 KiB: check the address and the port`,
  ],
}

/** A server that answers each request with these bytes, as latin1. */
async function speaking(bytes: string, closes: boolean) {
  const server = createServer((socket) => {
    let text = ''
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        text += chunk.toString('latin1')
        const [, length = ''] = /content-length: (\d+)/i.exec(text) ?? []
        if (text.length < text.indexOf('\r\n\r\n') + 4 + Number(length)) return
        text = ''
        const answer = Buffer.from(bytes, 'latin1')
        if (closes) socket.end(answer)
        else socket.write(answer)
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${portOf(server)}/` }
}

it('an answer that HTTP allows, or clients take, has its status and its body, each time', async () => {
  const rows = await Promise.all(
    Object.entries(TAKEN).map(async ([name, [bytes, status = 200, body = 'ok', closes]]) => ({
      ...(await speaking(bytes, closes !== undefined)),
      expected: { name, outcome: 'succeeded', status, answer: body, error: null },
    })),
  )
  await using here = await place({ host: 'none' })
  const relay = await here.serve(...rows.flatMap(({ url }) => ['--forward', url]))
  for (const _again of [1, 2]) await relay.deliver()
  await relay.objects({ type: 'attempt' }, 2 * rows.length)
  for (const n of ['1', '2']) {
    const { attempts } = JSON.parse((await here.run('show', n, '--json')).out)
    const found = rows.map(({ url, expected: { name } }) => {
      const own = attempts.find(({ target }: { target: string }) => target === url)
      const { outcome, status, answer, error } = own ?? {}
      return { name, outcome, status, answer, error }
    })
    expect(found).toEqual(rows.map(({ expected }) => expected))
    expect(attempts.length).toBe(rows.length)
  }
  for (const { server } of rows) server.close()
})

it('what no client takes is refused, once, with words why', async () => {
  const rows = await Promise.all(
    Object.entries(REFUSED).map(async ([name, [bytes, error]]) => ({
      ...(await speaking(bytes, false)),
      name,
      error,
    })),
  )
  await using here = await place({ host: 'none' })
  const relay = await here.serve(...rows.flatMap(({ url }) => ['--forward', url]))
  await relay.deliver()
  const attempts = await relay.objects({ type: 'attempt' }, rows.length)
  const found = rows.map(({ url, name }) => {
    const { outcome, status, error } = attempts.find(({ target }) => target === url) ?? {}
    return { name, outcome, status, error }
  })
  expect(found).toEqual(rows.map(({ name, error }) => ({ name, outcome: 'refused', status: null, error })))
  // Each has failed, so that nothing waits.
  expect(await linesOf(here)).toMatchObject([
    { targets: rows.map(({ error }) => ({ state: 'failed', reason: error, attempts: 1 })) },
  ])
  for (const { server } of rows) server.close()
})
