import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { withTransaction } from '../helpers/breakable.js'
import { githubDelivery } from '../helpers/delivery.js'
import { exchange, halfClosed, requestText } from '../helpers/http.js'
import { startWebhookService } from '../helpers/webhook-service.js'
import { entriesOf } from '../helpers/journal.js'

/** A database that writes nothing before `release` is called. */
async function heldDatabase() {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  let release = (): void => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const held = withTransaction(database, async (...args) => {
    await released
    return database.sql.transaction(...args)
  })
  return { database: held, release }
}

describe('a sender that ends its side after the delivery', () => {
  it('reads 200 once the delivery is stored, however long that takes', async () => {
    const { database, release } = await heldDatabase()
    await using service = await startWebhookService({ database })
    const port = Number(new URL(service.url).port)
    const { headers, body } = githubDelivery({ id: 'half' })
    const text = requestText('POST', '/webhook', Object.fromEntries(headers), Buffer.from(body).toString())
    const answer = halfClosed(port, text)
    // The delivery and the end of the client's side have arrived by then.
    for (let i = 0; i < 3; i++) await exchange(port, requestText('GET', '/health'))
    release()
    const [head, json] = (await answer).split('\r\n\r\n')
    expect({
      head: head?.split('\r\n')[0],
      json,
      stored: (await entriesOf(service.journal)).map((entry) => entry.deliveryId),
    }).toEqual({ head: 'HTTP/1.1 200 OK', json: '{"ok":true}', stored: ['half'] })
  })
})
