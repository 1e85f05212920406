import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { importSPKI, jwtVerify, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post } from '../kit/delivery.js'
import { JWT_SENDERS, jwtRequest } from '../kit/jwt-senders.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { objects } from './example.js'
import { shared } from './fixture.js'

const HOUR = 3_600_000
const key = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PUBLIC = key.publicKey.export({ type: 'spki', format: 'pem' }).toString()

/** What Wix says, in its three layers. */
function claimsOf(entity: object, id = '7f8f8ec4-3c52-4f0a-b0a6-7a9a0f7e6d25'): { readonly data: string } {
  const event = { id, slug: 'created', entityId: '1', createdEvent: { entity } }
  return {
    data: JSON.stringify({
      data: JSON.stringify(event),
      instanceId: 'i1',
      eventType: 'wix.contacts.v4.contact_created',
      identity: JSON.stringify({ identityType: 'APP' }),
    }),
  }
}

function tokenOf(
  claims: { readonly data: string },
  now: number,
  by: KeyObject = key.privateKey,
  alg = 'RS256',
): Promise<string> {
  const iat = Math.floor(now / 1000)
  return new SignJWT({ ...claims, iat, exp: iat + 600 }).setProtectedHeader({ alg }).sign(by)
}

/** Reads a token as the package @wix/sdk does, in build/auth/AppStrategy.js and event-handlers-modules.js (1.21.16). */
async function process(token: string, publicKey: string, now: number) {
  const { payload } = await jwtVerify(token, await importSPKI(publicKey, 'RS256'), {
    currentDate: new Date(now),
  })
  const { data, eventType } = JSON.parse(String(payload['data']))
  return { eventType, payload: JSON.parse(data) }
}

describe('wix', () => {
  const time = clock(Date.now())
  const target = shared(() => receiver())
  const here = shared(async () => {
    const made = await place({ host: 'none' })
    expect(await made.runWith({ stdin: PUBLIC }, 'source', 'add', 'wix')).toMatchObject({ code: 0 })
    return made
  })
  const relay = shared(() =>
    here.serveWith({ seams: { clock: time.now } }, '--forward', `wix/*=${target.url}`),
  )
  const send = async (body: string): Promise<number> =>
    (
      await post(`${relay.address}/webhook/wix`, {
        headers: [['Content-Type', 'text/plain']],
        body: Buffer.from(body),
      })
    ).status
  const ownKey = async (): Promise<string> =>
    String(objects((await here.run('source', 'list', '--json')).out)[0]?.['ownKey'])

  it('is taken with its event and id, shown by its claims, and forwarded as it came', async () => {
    const token = await tokenOf(claimsOf({ name: 'Jane' }), time.now())
    expect(await send(token)).toBe(200)
    await expect.poll(() => target.received.map(({ body }) => String(body))).toEqual([token])
    const [listed] = objects((await here.run('log', '--json')).out)
    expect(listed).toMatchObject({
      event: 'wix.contacts.v4.contact_created',
      delivery: '7f8f8ec4-3c52-4f0a-b0a6-7a9a0f7e6d25',
      verifiedBy: 'current',
    })
    const { out } = await here.run('show', 'last')
    expect(out).toMatch(/body \(\d+ bytes\): a token \(JWT\)\n/)
    expect(out).toContain('"name": "Jane"')
    expect(
      (await here.run('wait', '*', '--since', '1h', '--where', 'data.data.createdEvent.entity.name==Jane'))
        .code,
    ).toBe(0)
    expect((await here.run('verify', 'last')).code).toBe(0)
  })

  it('is refused when anything is changed, and relay says what', async () => {
    const now = time.now()
    const token = await tokenOf(claimsOf({}), now)
    const [head = '', claims = '', signature = ''] = token.split('.')
    const forged = Buffer.from(JSON.stringify(claimsOf({ name: 'Mallory' }))).toString('base64url')
    const refusals: readonly (readonly [body: string, reason: RegExp])[] = [
      [`${head}.${forged}.${signature}`, /another key, or was changed/],
      [await tokenOf(claimsOf({}), now, other.privateKey), /another key, or was changed/],
      [await tokenOf(claimsOf({}), now, key.privateKey, 'RS512'), /signed with "RS512"/],
      [`${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`, /signed with nothing/],
      [await tokenOf(claimsOf({}), now - HOUR), /its token expired/],
      ['{"data":"{}"}', /the body is no token/],
      // Members of JSON are no claims, whatever token is next to them.
      [JSON.stringify({ ...claimsOf({}), $: token, token }), /the body is no token/],
    ]
    for (const [body, reason] of refusals) {
      expect([reason, await send(body)]).toEqual([reason, 401])
      expect((await here.run('log', '--refused')).out.trimEnd().split('\n').at(-1)).toMatch(reason)
    }
  })

  it('is marked when it is late, since only Wix could sign it again', async () => {
    const token = await tokenOf(claimsOf({ name: 'Late' }, 'e-late'), time.now())
    expect(await send(token)).toBe(200)
    await expect.poll(() => target.received.length).toBe(2)
    time.advance(HOUR)
    const argv = ['replay', 'last', '--to', `${target.url}/late`]
    const ran = await here.runWith({ seams: { clock: time.now } }, ...argv)
    expect([ran.code, ran.out]).toEqual([0, expect.stringContaining('as it came, late')])
    const got = target.received.findLast((each) => each.path === '/late')
    expect([String(got?.body), got?.headers.find(([name]) => /^x-relay-late$/i.test(name))?.[1]]).toEqual([
      token,
      'true',
    ])
  })

  it('can be triggered and edited, with the key of relay', async () => {
    for (const argv of [
      ['trigger', '--source', 'wix', 'wix.contacts.v4.contact_created', '--set', 'data.data.entityId=e-7'],
      ['replay', 'last', '--set', 'data.data.entityId=e-7'],
    ]) {
      const ran = await here.runWith({ seams: { clock: time.now } }, ...argv, '--to', `${target.url}/made`)
      expect([argv[0], ran.code, ran.err]).toEqual([argv[0], 0, '1 sent\n'])
      const made = target.received.findLast((each) => each.path === '/made')
      expect(await process(String(made?.body), await ownKey(), time.now())).toMatchObject({
        eventType: 'wix.contacts.v4.contact_created',
        payload: { entityId: 'e-7' },
      })
    }
    const own = await here.runWith(
      { seams: { clock: time.now } },
      'trigger',
      'wix/wix.contacts.v4.contact_created',
    )
    expect([own.code, own.err]).toEqual([0, '1 sent\n'])
    expect(objects((await here.run('log', '--last', '1', '--json')).out)[0]).toMatchObject({
      verifiedBy: 'own',
    })
  })
})

const withDigest = JWT_SENDERS.filter(({ name }) => name === 'netlify' || name === 'plaid')

it.each(withDigest)('restores the bytes that the token of $name names, through a tunnel', async (sender) => {
  const { name } = sender
  await using server = await smee()
  await using target = await receiver()
  // As Python writes it, with a number that JavaScript writes otherwise.
  const spaced = {
    ...sender,
    body: sender.body.replaceAll(',', ', ').replaceAll(':', ': ').replace('}', ', "price": 1.0}'),
  }
  await using here = await place({ host: 'none' })
  expect(await here.runWith({ stdin: sender.secret }, 'source', 'add', name)).toMatchObject({ code: 0 })
  const relay = await here.serve('--tunnel', server.url, '--forward', target.url)
  const works = { type: 'tunnel', state: 'connected', roundTrip: 'ok', source: name }
  const own = String((await relay.object(works))['url'])
  const request = await jwtRequest(spaced, own, Date.now())
  const forged = await jwtRequest({ ...spaced, key: sender.otherKey }, own, Date.now())
  await post(own, forged)
  await post(own, request)
  await target.has(1)
  expect(target.received.map(({ body }) => String(body))).toEqual([spaced.body])
  const listed = objects((await here.run('log', '--json')).out)
  expect(listed).toEqual([expect.objectContaining({ verifiedBy: 'current' })])
})

it('takes a token body of a sender of one’s own', async () => {
  await using here = await place({ host: 'none' })
  const scheme = 'till=jwt at=$ algorithm=HS256 event=$.kind id=$.id'
  const secret = 'jwt-s3cret-0123456789-0123456789-0123456789'
  expect(await here.runWith({ stdin: secret }, 'source', 'add', scheme)).toMatchObject({ code: 0 })
  const relay = await here.serve()
  const sign = (text: string) =>
    new SignJWT({ kind: 'paid', id: 'o-1' }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(text))
  const send = async (body: string) =>
    (await post(`${relay.address}/webhook/till`, { headers: [], body: Buffer.from(body) })).status
  expect([await send(await sign(secret)), await send(await sign(`${secret}!`))]).toEqual([200, 401])
  expect(objects((await here.run('log', '--json')).out)[0]).toMatchObject({ event: 'paid', delivery: 'o-1' })
  writeFileSync(path.join(here.cwd, 'b.json'), '{"kind":"void","id":"o-2"}')
  const made = await here.run('trigger', '--source', 'till', '--body', 'b.json')
  expect([made.code, made.err]).toEqual([0, '1 sent\n'])
  expect(objects((await here.run('log', '--last', '1', '--json')).out)[0]).toMatchObject({ event: 'void' })
})
