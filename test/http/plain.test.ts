import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isPlain } from '../../src/http/plain.js'
import { connect } from '../helpers/http.js'
import { portOf } from '../helpers/scripted-server.js'

const options = { hostAllowed: (host = '') => host === 'localhost', limit: 10, headers: ['x-a'] }

describe('a request is plain', () => {
  const server = createServer({ requireHostHeader: false })
  const answer = (incoming: IncomingMessage, outgoing: { end(text: string): unknown }): void =>
    void outgoing.end(String(isPlain(incoming, options)))
  server.on('request', answer).on('checkContinue', answer)
  beforeAll(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterAll(() => void server.close())

  it.each<[string, boolean, string[]]>([
    ['with a host and a length', true, ['Host: localhost', 'Content-Length: 10']],
    ['with a length of nothing', true, ['Host: localhost', 'Content-Length: 0']],
    ['with a header that matters', true, ['Host: localhost', 'Content-Length: 0', 'X-A: 1']],
    ['with others twice', true, ['Host: localhost', 'Content-Length: 0', 'X-B: 1', 'X-B: 1']],
    ['without a length', false, ['Host: localhost']],
    ['in chunks', false, ['Host: localhost', 'Transfer-Encoding: chunked']],
    ['past the limit', false, ['Host: localhost', 'Content-Length: 11']],
    ['without a host', false, ['Content-Length: 0']],
    ['with another host', false, ['Host: evil.example', 'Content-Length: 0']],
    ['with two hosts', false, ['Host: localhost', 'HOST: localhost', 'Content-Length: 0']],
    ['with a header that matters twice', false, ['Host: localhost', 'Content-Length: 0', 'X-A: 1', 'x-a: 1']],
    ['waiting to be asked', false, ['Host: localhost', 'Content-Length: 1', 'Expect: 100-continue']],
  ])('%s: %s', async (_, plain, lines) => {
    const connection = await connect(portOf(server))
    connection.send(`POST / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    expect((await connection.answer()).body).toBe(String(plain))
    connection.socket.destroy()
  })
})
