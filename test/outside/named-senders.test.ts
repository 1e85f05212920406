import twilio from 'twilio'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post, secretVariable } from '../kit/delivery.js'
import { NAMED_SENDERS, type NamedSender } from '../kit/named-senders.js'
import { ownRequest, type Sent } from '../kit/own-senders.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { objects } from './example.js'
import { shared } from './fixture.js'

const HOUR = 3_600_000
const PUBLIC = 'https://hooks.example.com'
/** The id that relay gives to a delivery whose sender gives none. */
const OWN_ID = expect.stringMatching(/^relay-[\da-f-]{36}$/)
const named = NAMED_SENDERS.map((sender) => [sender.name, sender] as const)

/** What the sender's own package says of a request, if it has one that can. */
async function verdictOf({ verify, name }: NamedSender, request: Sent, now: number): Promise<string> {
  try {
    const found = verify && (await verify(request, `${PUBLIC}/webhook/${name}`, now))
    return found === false ? 'refused' : 'accepted'
  } catch (error) {
    return `refused: ${String(error)}`
  }
}

/** The body with another character at the end of a text. */
function changedAt(body: Buffer, text: string): Buffer {
  const changed = String(body).replace(text, `${text.slice(0, -1)}${text.endsWith('"') ? '"0' : '0'}`)
  return Buffer.from(changed)
}

describe('senders with a name', () => {
  const time = clock(Date.now())
  const target = shared(() => receiver())
  const here = shared(() =>
    place({
      host: 'none',
      env: {
        RELAY_PUBLIC_URL: PUBLIC,
        RELAY_SOURCES: named.map(([name, { scheme }]) => `${name}=${scheme}`).join('\n'),
        ...Object.fromEntries(named.map(([name, { secret }]) => [secretVariable(name), secret])),
      },
    }),
  )
  const relay = shared(() => {
    const flags = named.flatMap(([name]) => ['--forward', `${name}/*=${target.url}/${name}`])
    return here.serveWith({ seams: { clock: time.now } }, ...flags)
  })

  const make = (sender: NamedSender, body?: string): Sent =>
    ownRequest(sender, time.now(), `${PUBLIC}/webhook/${sender.name}`, body)
  const send = async (name: string, { query, ...request }: Sent): Promise<number> =>
    (await post(`${relay.address}/webhook/${name}${query}`, request)).status
  const receivedOf = (name: string): readonly Received[] =>
    target.received.filter(({ path }) => path.split('?')[0] === `/${name}`)
  const judge = ({ name, ...sender }: NamedSender, { path, headers, body }: Received): Promise<string> => {
    const [, query] = path.split('?')
    const request = { headers, body, query: query === undefined ? '' : `?${query}` }
    return verdictOf({ name, ...sender }, request, time.now())
  }

  it.each(named)('%s is taken, named, and forwarded as it came', async (name, sender) => {
    const request = make(sender)
    expect(await verdictOf(sender, request, time.now())).toBe('accepted')
    expect(await send(name, request)).toBe(200)
    await expect.poll(() => receivedOf(name).length).toBe(1)
    const [{ body, headers } = expect.unreachable()] = receivedOf(name)
    expect(body).toEqual(request.body)
    const sent = headers.map(([each, value]) => [each.toLowerCase(), value])
    for (const [each, value] of request.headers) expect(sent).toContainEqual([each.toLowerCase(), value])
    const [shown] = objects((await here.run('log', '--source', name, '--json')).out)
    expect(shown).toMatchObject({
      event: sender.event,
      delivery: sender.id ?? OWN_ID,
      verifiedBy: 'current',
    })
  })

  it.each(named)('%s is refused without its proof, and when a byte is changed', async (name, sender) => {
    const right = make(sender)
    const without = right.headers.filter(
      ([each]) => /sign|hmac|-mac|token|auth|hash|trello/i.test(each) && !/timestamp|idempotency/i.test(each),
    )
    expect(without.length > 0 || !sender.coversBody).toBe(true)
    const inBody = (sender.signed ?? []).map((text) => ({ ...right, body: changedAt(right.body, text) }))
    const changed: Sent[] = [
      ...without.map(([each]) => ({ ...right, headers: right.headers.filter(([line]) => line !== each) })),
      ...inBody,
      ...(right.query === '' ? [] : [{ ...right, query: right.query.replace(/.$/, 'X') }]),
      ...(sender.signed === undefined
        ? [
            sender.coversBody
              ? { ...right, body: Buffer.from(`${String(right.body)} `) }
              : {
                  ...right,
                  headers: [],
                  query: '',
                  body: Buffer.from(String(right.body).replace(sender.secret, 'no')),
                },
          ]
        : []),
    ]
    expect(changed.length).toBeGreaterThan(0)
    for (const request of changed) expect([name, await send(name, request)]).toEqual([name, 401])
  })

  it.each(named)('%s is right an hour later', async (name, sender) => {
    const old = make(sender)
    const [last] = objects((await here.run('log', '--source', name, '--last', '1', '--json')).out)
    time.advance(HOUR)
    expect(sender.isTimed ? await send(name, old) : 401).toBe(401)
    const count = receivedOf(name).length
    const ran = await here.runWith(
      { seams: { clock: time.now } },
      'replay',
      String(last?.['n']),
      '--keep-id',
      '--to',
      `${target.url}/${name}`,
    )
    expect(ran).toMatchObject({ code: 0 })
    const verdicts = receivedOf(name)
      .slice(count)
      .map((again) => judge(sender, again))
    expect(await Promise.all(verdicts)).toEqual(['accepted'])
    // To relay itself, which verifies it anew.
    const { code } = await here.runWith({ seams: { clock: time.now } }, 'replay', String(last?.['n']))
    expect(code).toBe(0)
  })
})

describe('Twilio', () => {
  const JSON_BODY = '[{"specversion":"1.0","type":"com.twilio.messaging.message.sent","id":"EZ1"}]'
  const FIELDS = 'MessageStatus=sent&To=%2B1555'

  it.each([
    ['a body that is no form', JSON_BODY, 'HMAC_SHA1', 'com.twilio.messaging.message.sent'],
    ['one with a shared key', JSON_BODY, 'HMAC_SHA256', 'com.twilio.messaging.message.sent'],
    ['a form with a shared key', FIELDS, 'HMAC_SHA256', 'sent'],
  ])('signs %s, and its package verifies what is forwarded', async (_, body, algorithm, event) => {
    const secret = 's3cret-0123456789'
    await using target = await receiver()
    await using own = await place({
      host: 'none',
      env: { RELAY_PUBLIC_URL: PUBLIC, [secretVariable('twilio')]: secret },
    })
    const relay = await own.serve('--source', 'twilio', '--forward', `twilio/*=${target.url}`)
    const isForm = body === FIELDS
    const query = isForm ? '' : `?bodySHA256=${twilio.getExpectedBodyHash(body)}`
    const url = `${PUBLIC}/webhook/twilio`
    const fields = isForm ? Object.fromEntries(new URLSearchParams(body)) : {}
    const headers = [
      ['Content-Type', isForm ? 'application/x-www-form-urlencoded' : 'application/json'],
      ['X-Twilio-Signature', twilio.getExpectedTwilioSignature(secret, url + query, fields, algorithm)],
    ] as const
    const at = `${relay.address}/webhook/twilio`
    for (const changed of [body.replace('sent', 'Sent'), `${body} `])
      expect((await post(at + query, { headers, body: Buffer.from(changed) })).status).toBe(401)
    const answer = await post(at + query, { headers, body: Buffer.from(body) })
    expect(answer).toMatchObject({ status: 200, body: '<Response/>' })
    await target.has(1)
    const [got = expect.unreachable()] = target.received
    const signature = valuesOf(got, 'X-Twilio-Signature')[0] ?? ''
    const [, passed] = got.path.split('?')
    const whole = passed === undefined ? url : `${url}?${passed}`
    expect(
      isForm
        ? twilio.validateRequest(secret, signature, whole, fields, algorithm)
        : twilio.validateRequestWithBody(secret, signature, whole, String(got.body), algorithm),
    ).toBe(true)
    const [shown] = objects((await own.run('log', '--json')).out)
    expect(shown).toMatchObject({ event })
  })
})

describe('a sender with a name that signs its address', () => {
  const signing = named.filter(([, sender]) => {
    const [one, other] = ['a', 'b'].map((host) => ownRequest(sender, 0, `https://${host}.example/`).headers)
    return JSON.stringify(one) !== JSON.stringify(other)
  })
  const ADDRESS = 'https://proxy.example/hooks?of=shop'

  it('is one of a few', () => {
    expect(signing.map(([name]) => name)).toEqual(['square', 'twilio', 'hubspot', 'mandrill', 'trello'])
  })

  it.each(signing)('takes the address that it was given as url=: %s', async (name, sender) => {
    await using own = await place({ host: 'none', env: { [secretVariable('shop')]: sender.secret } })
    const relay = await own.serve('--source', `shop=${name} url=${ADDRESS}`)
    const { query: _, ...request } = ownRequest(sender, Date.now(), ADDRESS)
    expect((await post(`${relay.address}/webhook/shop?of=shop`, request)).status).toBe(200)
  })

  it('says so, and no other takes one', async () => {
    await using own = await place({ host: 'none', env: { [secretVariable('shop')]: 'x' } })
    const refused = await own.run('serve', '--source', 'shop=stripe url=https://proxy.example/')
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringContaining('The scheme stripe signs no address: leave url= out'),
    })
  })
})
