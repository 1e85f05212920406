import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post, secretVariable } from '../kit/delivery.js'
import { OWN_SENDERS, type OwnSender, ownRequest, type Sent } from '../kit/own-senders.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { requestOf, SENDERS } from '../kit/senders.js'
import { objects } from './example.js'

const HOUR = 3_600_000
const named = OWN_SENDERS.map((sender, i) => [sender.name, `own-${i}`, sender] as const)
const PUBLIC = 'https://hooks.example.com'

/** Another text at its end, or of another shape. */
const otherText = (text: string): string =>
  /\w$/.test(text) ? `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}` : `${text}0`

describe('schemes of one’s own', () => {
  const time = clock(Date.now())
  let here: Place
  let relay: Serving
  let target: Awaited<ReturnType<typeof receiver>>

  beforeAll(async () => {
    target = await receiver()
    here = await place({
      host: 'none',
      env: {
        RELAY_PUBLIC_URL: PUBLIC,
        RELAY_SOURCES: named.map(([, source, { scheme }]) => `${source}=${scheme}`).join('\n'),
        ...Object.fromEntries(named.map(([, source, { secret }]) => [secretVariable(source), secret])),
      },
    })
    const flags = named.flatMap(([, source]) => ['--forward', `${source}/*=${target.url}/${source}`])
    relay = await here.serveWith({ seams: { clock: time.now } }, ...flags)
  })
  afterAll(async () => {
    await here[Symbol.asyncDispose]()
    await target[Symbol.asyncDispose]()
  })

  const urlOf = (source: string): string => `${PUBLIC}/webhook/${source}`
  const send = async (source: string, { query, ...request }: Sent): Promise<number> =>
    (await post(`${relay.address}/webhook/${source}${query}`, request)).status
  const make = (source: string, sender: OwnSender, body?: string): Sent =>
    ownRequest(sender, time.now(), urlOf(source), body)
  const lastAt = async (source: string, count: number): Promise<Received> => {
    const own = (): readonly Received[] =>
      target.received.filter(({ path }) => path.split(/[?/]/)[1] === source)
    await expect.poll(() => own().length).toBe(count)
    return own().at(-1) ?? expect.unreachable()
  }

  it.each(named)('take what is right, and forward it as it came: %s', async (_, source, sender) => {
    const request = make(source, sender)
    expect(await send(source, request)).toBe(200)
    const { body, headers } = await lastAt(source, 1)
    expect(body).toEqual(request.body)
    const sent = headers.map(([name, value]) => [name.toLowerCase(), value])
    for (const [name, value] of request.headers) expect(sent).toContainEqual([name.toLowerCase(), value])
    const [shown] = objects((await here.run('log', '--source', source, '--json')).out)
    expect(shown).toMatchObject({ event: 'paid', verifiedBy: 'current' })
  })

  it.each(named)(
    'refuse another secret, and any signed byte that is changed: %s',
    async (_, source, sender) => {
      const right = make(source, sender)
      const proofs = right.headers.filter(([name]) => name !== 'Content-Type')
      const flipped = (text: string): string =>
        text.replace(/[\da-f](?=\D*$)/i, (digit) => (digit === '0' ? '1' : '0'))
      const changed: Sent[] = [
        ...proofs.map(([name, value]) => ({
          ...right,
          headers: right.headers.map((line) => (line[0] === name ? ([name, flipped(value)] as const) : line)),
        })),
        ...proofs.map(([name]) => ({ ...right, headers: right.headers.filter((line) => line[0] !== name) })),
        ...(right.query.includes('sign=') || /query|shop/.test(sender.scheme + right.query)
          ? [{ ...right, query: flipped(right.query) }]
          : []),
        ...(sender.signed ?? []).map((text) => ({
          ...right,
          body: Buffer.from(String(right.body).replace(text, (found) => otherText(found))),
        })),
        ...(sender.coversBody
          ? [{ ...right, body: Buffer.from(String(right.body).replace('paid', 'Paid')) }]
          : proofs.length > 0 || sender.signed
            ? []
            : [
                {
                  ...right,
                  body: Buffer.from(String(right.body).replace('s3', 's4')),
                  query: right.query.replace('s3', 's4'),
                },
              ]),
      ]
      expect(changed.length).toBeGreaterThan(0)
      for (const request of changed)
        expect([String(request.body), request.headers, request.query, await send(source, request)]).toEqual([
          String(request.body),
          request.headers,
          request.query,
          401,
        ])
    },
  )

  it.each(named)(
    'sign again what is too old, so that it is right an hour later: %s',
    async (_, source, sender) => {
      const old = make(source, sender)
      const [last] = objects((await here.run('log', '--source', source, '--last', '1', '--json')).out)
      time.advance(HOUR)
      expect(sender.isTimed ? await send(source, old) : 401).toBe(401)
      const ran = await here.runWith({ seams: { clock: time.now } }, 'replay', String(last?.['n']))
      // Verified anew: as a new delivery, or as a duplicate where the id is signed.
      expect(ran).toMatchObject({ code: 0 })
    },
  )

  it.each(named.filter(([, , { coversBody }]) => !coversBody))(
    'show the secret of nothing but the body: %s',
    async (_, source, { secret, scheme }) => {
      const { out } = await here.run('show', 'last', '--source', source, '--json')
      const encoded = Buffer.from(secret).toString('base64')
      const [shown] = objects(out)
      const rest = JSON.stringify({ ...shown, body: '', payload: null })
      expect([rest.includes(secret), rest.includes(encoded)]).toEqual([false, false])
      expect(scheme).toBeTruthy()
    },
  )
})

describe('a log', () => {
  it('has no path of a source that may hold a secret', async () => {
    await using own = await place({ host: 'none', env: { [secretVariable('shop')]: 's3cret-in-path' } })
    const relay = await own.serve('--source', 'shop=token at=/1', '--max-body', '10')
    const send = async (path: string, body: string) =>
      (await post(`${relay.address}/webhook/${path}`, { headers: [], body: Buffer.from(body) })).status
    expect(await send('shop/s3cret-in-path', '{"a":1}')).toBe(200)
    expect(await send('shop/s3cret-in-path/more', '{"a":"0123456789"}')).toBe(413)
    expect(await send('none/s3cret-in-path', '{}')).toBe(404)
    expect(await send('shop/s3cret-in-path-x', '{}')).toBe(401)
    const { out } = await own.run('log', '--json')
    const { out: refused } = await own.run('log', '--refused', '--json')
    expect(`${relay.err}${out}${refused}`).not.toContain('s3cret-in-path')
  })
})

/** Makes a place with one source, whose scheme differs from what its sender signs. */
async function reasonOf(sender: OwnSender, scheme: string, secret = sender.secret): Promise<string> {
  await using own = await place({
    host: 'none',
    env: { RELAY_PUBLIC_URL: PUBLIC, [secretVariable('shop')]: secret },
  })
  const relay = await own.serve('--source', `shop=${scheme}`)
  const { query, ...request } = ownRequest(sender, Date.now(), `${PUBLIC}/webhook/shop`)
  expect((await post(`${relay.address}/webhook/shop${query}`, request)).status).toBe(401)
  const [refused] = objects((await own.run('log', '--refused', '--json')).out)
  return String(refused?.['reason'])
}

const senderOf = (start: string): OwnSender =>
  OWN_SENDERS.find(({ name }) => name.startsWith(start)) ?? expect.unreachable()

describe('a request that another scheme would prove is explained', () => {
  it.each([
    [
      'pairs with a semicolon',
      'hmac header=X-Sign prefix=h1= signed={timestamp}:{body} time=X-Sign#ts',
      'the parts of X-Sign are separated by a semicolon: write separator=;; otherwise it is right',
    ],
    [
      'milliseconds',
      'hmac header=X-Sign prefix=v1= time=X-Sign#t',
      't= in X-Sign, which the signature covers, is Unix milliseconds, expected Unix seconds',
    ],
    [
      'a date, as Zendesk',
      'hmac header=X-Sign encoding=base64 signed={timestamp}{body} time=X-Time unit=ms',
      'X-Time, which the signature covers, is a date of RFC 3339, expected Unix milliseconds',
    ],
    [
      'upper-case hex',
      'hmac header=X-Sign',
      'X-Sign is in upper case, expected X-Sign: <64 lower-case hex digits>; otherwise it is right',
    ],
    [
      'base64url without padding',
      'hmac header=X-Sign prefix=v1= time=X-Sign#t unit=ms',
      'X-Sign is in base64',
    ],
    [
      'sha512',
      'hmac header=X-Sign',
      'X-Sign is as long as one of HMAC-SHA512, expected X-Sign: <64 lower-case hex digits>; otherwise it is right',
    ],
    ['a key in base64', 'hmac header=X-Sign prefix=hmac-sha256=', 'decoded from base64'],
    ['a key in hex', 'hmac header=X-Sign', 'it is signed with the secret decoded from hex: key=hex'],
    [
      'address before',
      'hmac header=X-Sign encoding=base64',
      'the signature covers {url}{body}, expected {body}',
    ],
    [
      'sorted fields after',
      'hmac header=X-Sign algorithm=sha1 encoding=base64',
      'the signature covers {url}{fields}, expected {body}',
    ],
    [
      'an address with a query',
      `hmac header=X-Sign signed={url}{body} url=${PUBLIC}/webhook/shop`,
      'the signature covers the address, and the request has the query ?…, which the sender was not given',
    ],
  ])('%s', async (start, scheme, hint) => {
    expect(await reasonOf(senderOf(start), scheme)).toContain(hint)
  })

  it('and one that another source’s secret proves', async () => {
    const sender = senderOf('sha512')
    await using own = await place({
      host: 'none',
      env: { RELAY_SOURCE_SHOP_SECRET: sender.secret, RELAY_SOURCE_BILLING_SECRET: 'another' },
    })
    const sources = [`shop=${sender.scheme}`, 'billing=stripe'].flatMap((text) => ['--source', text])
    const relay = await own.serve(...sources)
    const request = ownRequest(sender, Date.now(), '')
    expect((await post(`${relay.address}/webhook/billing`, request)).status).toBe(401)
    const [refused] = objects((await own.run('log', '--refused', '--json')).out)
    const why =
      'it is a delivery of shop, whose secret proves it: enter an address that ends in /webhook/shop at the sender'
    expect(refused?.['reason']).toBe(why)
    const env = { RELAY_SOURCES: `shop=${sender.scheme}\nbilling=stripe` }
    const { code, out } = await own.runWith({ env }, 'verify', 'refused:1')
    expect([code, out]).toEqual([5, expect.stringContaining(why)])
  })
})

describe('hmac refuses what could prove another request', () => {
  it.each([
    ['hmac header=X signed={query}{body}', 'needs text between {query} and {body}'],
    ['hmac header=X signed={url}.{timestamp}.{body} time=X-T', 'that no address contains'],
    ['hmac header=X signed={fields}{body}', 'needs {fields} at the end of signed='],
    ['hmac header=X signed={method}{url}', 'needs {body} in signed='],
    ['hmac at=?s signed={url}{body}', 'cannot sign the query that the signature is in'],
    ['hmac at=$.s', 'needs a signature outside of the body that it covers'],
    ['token header=X at=$.s', 'has header= and at=: leave one out'],
    ['hmac header=X unit=h time=X-T', 'needs unit= with s, ms or rfc3339'],
    ['hmac header=X key=latin1', 'needs key= with text, base64 or hex'],
  ])('%s', async (scheme, why) => {
    await using own = await place({ host: 'none' })
    const { code, err } = await own.run('serve', '--port', '0', '--source', `shop=${scheme}`)
    expect([code, err]).toEqual([2, expect.stringContaining(why)])
  })

  it('a query that runs into the body, in a request', async () => {
    const sender = senderOf('address before')
    await using own = await place({
      host: 'none',
      env: { RELAY_PUBLIC_URL: PUBLIC, [secretVariable('shop')]: sender.secret },
    })
    const relay = await own.serve('--source', `shop=${sender.scheme}`)
    const { headers } = ownRequest(sender, 0, `${PUBLIC}/webhook/shop`, '?a=1{"kind":"paid"}')
    const at = `${relay.address}/webhook/shop`
    // The same signed text, divided elsewhere.
    expect((await post(`${at}?a=1`, { headers, body: Buffer.from('{"kind":"paid"}') })).status).toBe(200)
    expect((await post(`${at}?a`, { headers, body: Buffer.from('=1{"kind":"paid"}') })).status).toBe(401)
    expect((await post(at, { headers, body: Buffer.from('?a=1{"kind":"paid"}') })).status).toBe(401)
  })

  it('has no tunnel for what covers fields alone', async () => {
    await using own = await place({ host: 'none', env: { RELAY_SOURCE_SHOP_SECRET: 'x' } })
    const flags = [
      '--source',
      'shop=hmac header=X-Sign signed={url}{fields}',
      '--tunnel',
      'http://127.0.0.1:9',
    ]
    const { code, err } = await own.run('serve', '--port', '0', ...flags)
    expect([code, err]).toEqual([2, expect.stringContaining('do not prove their body')])
  })
})

/** Senders with a package that signs, in the words of hmac. */
const IN_WORDS: readonly (readonly [name: string, scheme: string])[] = [
  ['stripe', 'hmac header=Stripe-Signature prefix=v1= time=Stripe-Signature#t event=$.type id=$.id'],
  [
    'slack',
    'hmac header=X-Slack-Signature prefix=v0= signed=v0:{timestamp}:{body} time=X-Slack-Request-Timestamp event=$.event.type id=$.event_id',
  ],
  [
    'standard',
    'hmac header=webhook-signature prefix=v1, encoding=base64 key=base64 signed={id}.{timestamp}.{body} id=webhook-id time=webhook-timestamp event=$.type',
  ],
  [
    'svix',
    'hmac header=svix-signature prefix=v1, encoding=base64 key=base64 signed={id}.{timestamp}.{body} id=svix-id time=svix-timestamp event=$.type',
  ],
  [
    'linear',
    'hmac header=Linear-Signature time=$.webhookTimestamp unit=ms tolerance=1m event=$.type id=Linear-Delivery',
  ],
  ['second', 'hmac header=X-Hub-Signature-256 prefix=sha256= event=X-GitHub-Event id=X-GitHub-Delivery'],
]

describe('what the package of a sender with a name signs', () => {
  it.each(IN_WORDS)('is taken by hmac that says it in words: %s', async (name, scheme) => {
    const sender = Object.entries(SENDERS).find(([each]) => each === name || each.startsWith(`${name}-`))?.[1]
    if (!sender) throw new Error(`there is no sender ${name}`)
    await using own = await place({ host: 'none', env: { [secretVariable('shop')]: sender.secret } })
    const relay = await own.serve('--source', `shop=${scheme}`)
    const request = await requestOf(sender, Date.now())
    expect(await post(`${relay.address}/webhook/shop`, request)).toMatchObject({ status: 200 })
    const changed = { ...request, body: Buffer.concat([request.body, Buffer.from(' ')]) }
    expect(await post(`${relay.address}/webhook/shop`, changed)).toMatchObject({ status: 401 })
    const [shown] = objects((await own.run('log', '--json')).out)
    expect(shown).toMatchObject({ source: 'shop', verifiedBy: 'current' })
  })
})
