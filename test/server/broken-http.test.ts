import { describe, expect, it } from 'vitest'
import { type BrokenRequest, refusedByParser, refusedForHost, silent } from '../helpers/broken-http.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { connect, requestText } from '../helpers/http.js'
import { JSON_TYPE, type Relay, startRelay } from './auth-rig.js'
import { entriesOf } from '../helpers/journal.js'

/** The answer to a valid delivery, and the ids of all stored deliveries. */
async function served({ url, journal }: Relay) {
  const answer = await post(`${url}/webhook`, githubDelivery({ id: 'proper' }))
  return { ...answer, stored: (await entriesOf(journal)).map(({ deliveryId }) => deliveryId) }
}

const SERVED = { status: 200, type: JSON_TYPE, body: '{"ok":true}', stored: ['proper'] }

async function answerTo({ port }: Relay, request: string) {
  const connection = await connect(port)
  connection.send(request)
  const { status, headers, body } = await connection.answer()
  connection.socket.destroy()
  return { status, type: headers['content-type'], id: headers['x-request-id'], body }
}

const refusal = ({ status, error }: BrokenRequest) => ({
  status,
  type: JSON_TYPE,
  id: expect.stringMatching(/^[\da-f-]{36}$/),
  body: JSON.stringify({ error }),
})

describe('the application keeps working after', () => {
  it.each([...refusedByParser('/webhook'), ...refusedForHost('/webhook')])('$name', async (broken) => {
    await using relay = await startRelay()
    expect(await answerTo(relay, broken.request)).toEqual(refusal(broken))
    expect(await served(relay)).toEqual(SERVED)
  })

  it.each(silent('/webhook'))('$name, then silence', async (broken) => {
    await using relay = await startRelay({ limits: { headers: 200, request: 400 } })
    expect(await answerTo(relay, broken.request)).toEqual(refusal(broken))
    expect(await served(relay)).toEqual(SERVED)
  })

  it('a client that disconnects mid-request', async () => {
    await using relay = await startRelay()
    for (const { request } of silent('/webhook')) {
      const connection = await connect(relay.port)
      connection.send(request)
      connection.socket.resetAndDestroy()
      expect(await served(relay)).toEqual(SERVED)
    }
  })

  it('a broken request after a valid one on the same connection', async () => {
    await using relay = await startRelay()
    const connection = await connect(relay.port)
    connection.send(`${requestText('GET', '/health')}broken\r\n\r\n`)
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"ok"}' })
    await connection.closed()
    expect(await served(relay)).toEqual(SERVED)
  })
})
