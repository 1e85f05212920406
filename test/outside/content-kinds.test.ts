import { createHmac } from 'node:crypto'
import { deflateSync, gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { post } from '../kit/delivery.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const SECRET = 's3cret'
const EVENT = '{"type":"invoice.paid","id":"evt_1","name":"Zoë"}'
const MULTIPART = `--b\r\nContent-Disposition: form-data; name="type"\r\n\r\ninvoice.paid\r\n--b--\r\n`

/** Bodies that are no JSON in UTF-8, and how relay names them. */
const BODIES: readonly (readonly [name: string, body: Buffer])[] = [
  ['gzip', gzipSync(EVENT)],
  ['deflate', deflateSync(EVENT)],
  ['in UTF-16', Buffer.from(`\ufeff${EVENT}`, 'utf16le')],
  ['in UTF-16', Buffer.from(EVENT, 'utf16le')],
  ['in UTF-8 with a byte order mark', Buffer.from(`\ufeff${EVENT}`)],
  ['in another charset than UTF-8, perhaps windows-1252', Buffer.from(EVENT, 'latin1')],
  ['XML', Buffer.from(`<?xml version="1.0"?><event id="1"/>`)],
  ['a multipart form', Buffer.from(MULTIPART)],
]

/** How each source signs, and the address of its deliveries. */
const SOURCES = {
  shop: ['hmac header=X-Signature event=$.type id=$.id', 'x-signature', 'hex'],
  xero: ['xero', 'x-xero-signature', 'base64'],
  cko: ['checkout', 'cko-signature', 'hex'],
} as const

it.each(BODIES.flatMap((body) => Object.entries(SOURCES).map((source) => [...body, ...source] as const)))(
  'a body that is %s is stored and named (%s %s)',
  async (name, body, source, [scheme, header, encoding]) => {
    await using here = await place({
      host: 'none',
      env: {
        RELAY_SOURCES: `${source}=${scheme}`,
        [`RELAY_SOURCE_${source.toUpperCase()}_SECRET`]: SECRET,
      },
    })
    await using target = await receiver()
    const relay = await here.serve('--forward', `${source}/*=${target.url}`)
    const signature = createHmac('sha256', SECRET).update(body).digest(encoding)
    const answer = await post(`${relay.address}/webhook/${source}`, {
      headers: [[header, signature]],
      body,
    })
    expect(answer.status).toBe(200)
    await expect.poll(() => target.received.map((each) => each.body)).toEqual([body])
    const isForm = name === 'a multipart form'
    const shown = await here.run('show', 'last')
    expect(shown.out).toMatch(new RegExp(`\nbody \\(${body.length} bytes\\): ${name}`))
    const verified = await here.run('verify', 'last')
    expect(verified.code).toBe(0)
    if (isForm) return
    expect(verified.out).toContain(`the body is ${name}`)
    const set = await here.run('replay', 'last', '--set', 'a=1', '--to', target.url)
    expect([set.code, set.err]).toEqual([
      2,
      expect.stringContaining(`Cannot set a field: the body is ${name}`),
    ])
  },
)

it('names a body in which the proof cannot be read', async () => {
  await using here = await place({
    host: 'none',
    env: { RELAY_SOURCES: 'figma', RELAY_SOURCE_FIGMA_SECRET: SECRET },
  })
  const relay = await here.serve()
  const body = gzipSync(`{"passcode":"${SECRET}","event_type":"PING"}`)
  expect((await post(`${relay.address}/webhook/figma`, { headers: [], body })).status).toBe(401)
  const refused = await here.run('log', '--refused')
  expect(refused.out).toContain('the body is gzip')
})
