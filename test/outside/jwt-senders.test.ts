import { createHash, createHmac, createPublicKey } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post, type WebhookRequest } from '../kit/delivery.js'
import { isRight, JWT_SENDERS, jwtRequest } from '../kit/jwt-senders.js'
import { valueOf } from '../kit/key-senders.js'
import { place } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { objects } from './example.js'
import { shared } from './fixture.js'

const HOUR = 3_600_000
const PUBLIC = 'https://hooks.example.com'
const OWN_ID = expect.stringMatching(/^relay-[\da-f-]{36}$/)
const named = JWT_SENDERS.map((sender) => [sender.name, sender] as const)
const urlOf = (name: string): string => `${PUBLIC}/webhook/${name}`

describe('senders that prove their requests with a JWT', () => {
  const time = clock(Date.now())
  const target = shared(() => receiver())
  const keys = shared(async () => {
    const published = await JWT_SENDERS.find((each) => each.published)?.published?.()
    return receiver({ body: published ?? {} })
  })
  const here = shared(async () => {
    const made = await place({ host: 'none', env: { RELAY_PUBLIC_URL: PUBLIC } })
    for (const [name, { scheme, secret }] of named) {
      const text = `${name}=${scheme.replace('KEYS', `${keys.url}/certs`)}`
      expect(await made.runWith({ stdin: secret }, 'source', 'add', text)).toMatchObject({ code: 0 })
    }
    return made
  })
  const relay = shared(() => {
    const flags = named.flatMap(([name]) => ['--forward', `${name}/*=${target.url}/${name}`])
    return here.serveWith({ seams: { clock: time.now } }, ...flags)
  })
  const send = async (name: string, request: WebhookRequest): Promise<number> =>
    (await post(`${relay.address}/webhook/${name}`, request)).status
  const receivedOf = (name: string): readonly Received[] =>
    target.received.filter(({ path }) => path === `/${name}`)
  const lastOf = async (name: string): Promise<Record<string, unknown>> =>
    objects((await here.run('log', '--source', name, '--last', '1', '--json')).out)[0] ?? expect.unreachable()
  const sourceOf = async (name: string): Promise<Record<string, unknown>> =>
    objects((await here.run('source', 'list', '--json')).out).find((each) => each['name'] === name) ??
    expect.unreachable()
  /** What a program has that is to accept what relay signs: the secret, or relay's own key. */
  const acceptedKey = async (sender: (typeof JWT_SENDERS)[number]) => {
    const { ownKey } = await sourceOf(sender.name)
    return sender.publicKey(typeof ownKey === 'string' ? ownKey : sender.secret)
  }

  it.each(named)('%s is taken, named, and forwarded', async (name, sender) => {
    const request = await jwtRequest(sender, urlOf(name), time.now())
    expect(await send(name, request)).toBe(200)
    await expect.poll(() => receivedOf(name).length).toBe(1)
    const [got = expect.unreachable()] = receivedOf(name)
    expect(got.body).toEqual(request.body)
    // A token that proves nothing of the body is a credential, which relay does not store: it makes another.
    const isSame = valueOf(got, sender.header) === valueOf(request, sender.header)
    const key = isSame ? sender.publicKey(sender.secret) : await acceptedKey(sender)
    expect([isSame, await isRight(sender, got, key, time.now())]).toEqual([sender.digest !== undefined, true])
    expect(await lastOf(name)).toMatchObject({
      event: sender.event,
      delivery: sender.id ?? OWN_ID,
      verifiedBy: 'current',
    })
    const shown = await here.run('show', String((await lastOf(name))['n']), '--json')
    expect(shown.out.includes(valueOf(request, sender.header).slice(-40))).toBe(sender.digest !== undefined)
  })

  it.each(named)('%s is refused when anything is changed, and relay says what', async (name, sender) => {
    const url = urlOf(name)
    const now = time.now()
    const make = (options: Parameters<typeof jwtRequest>[3], at = now) => jwtRequest(sender, url, at, options)
    const right = await make({})
    const token = valueOf(right, sender.header).slice(sender.prefix.length)
    const withToken = (text: string): WebhookRequest => ({
      ...right,
      headers: [
        ['Content-Type', 'application/json'],
        [sender.header, sender.prefix + text],
      ],
    })
    // The public key as a secret, which everybody knows.
    const [head = '', claims = ''] = token.split('.')
    const hs256 = Buffer.from('{"alg":"HS256"}').toString('base64url')
    const confused = `${hs256}.${claims}`
    const forged = `${confused}.${createHmac('sha256', sender.secret).update(confused).digest('base64url')}`
    const refusals: [WebhookRequest, RegExp][] = [
      [
        await make({ alg: 'none' }),
        /its token is signed with nothing \(alg none\), and this sender signs with /,
      ],
      [
        await make({ key: sender.otherKey }),
        /its token is signed with another (?:key|secret), or was changed/,
      ],
      [withToken(`${head}.${claims.slice(0, -2)}.x`), /no JWT|another (?:key|secret)/],
      [withToken('x'), /is malformed|there is no|no JWT/],
      ...(sender.alg === 'HS256'
        ? []
        : ([[withToken(forged), /its token is signed with "HS256", and this sender signs with /]] satisfies [
            WebhookRequest,
            RegExp,
          ][])),
      ...(sender.digest === undefined
        ? []
        : ([
            [await make({ body: `${sender.body} ` }), /its token is right, and covers another body/],
            [await make({ claims: { [sender.digest]: undefined } }), /its token does not cover the body/],
          ] satisfies [WebhookRequest, RegExp][])),
      ...(sender.isTimed
        ? ([
            [await make({}, now - HOUR), /its token (?:expired \(exp\)|was made \(iat\)) \d+ s ago/],
            [await make({ claims: { nbf: Math.floor(now / 1000) + 3600 } }), /its token is for 3600 s later/],
          ] satisfies [WebhookRequest, RegExp][])
        : []),
      ...(sender.wrong
        ? ([
            [
              await make({ claims: { [sender.wrong[0]]: sender.wrong[1] } }),
              new RegExp(
                `its token is for (?:${sender.wrong[0]} "|another request \\(${sender.wrong[0]}\\))`,
              ),
            ],
          ] satisfies [WebhookRequest, RegExp][])
        : []),
      ...(sender.scheme.includes('aud=')
        ? ([
            [
              await make({ claims: { aud: 'https://elsewhere.example/' } }),
              /write the audience that you set/,
            ],
          ] satisfies [WebhookRequest, RegExp][])
        : []),
      ...(sender.published
        ? ([
            [await make({ kid: 'unknown' }), /names the key "unknown" \(kid\), which is not among those at/],
          ] satisfies [WebhookRequest, RegExp][])
        : []),
    ]
    for (const [request, reason] of refusals) {
      expect([reason, await send(name, request)]).toEqual([reason, 401])
      expect(JSON.stringify((await sourceOf(name))['lastRefusal']).replaceAll('\\"', '"')).toMatch(reason)
    }
  })

  it('asks for the keys of a set once, and within a minute not again for one that is unknown', () => {
    expect(keys.received.map(({ path }) => path)).toEqual(['/certs'])
  })

  it.each(named)(
    '%s is right an hour later where the secret signs, else as it came and marked',
    async (name, sender) => {
      const { n } = await lastOf(name)
      const count = receivedOf(name).length
      time.advance(HOUR)
      const ran = await here.runWith({ seams: { clock: time.now } }, 'replay', String(n), '--keep-id')
      expect(ran).toMatchObject({ code: 0 })
      const [again = expect.unreachable()] = receivedOf(name).slice(count)
      const onlySender = sender.digest !== undefined && sender.alg !== 'HS256'
      const isSame = valueOf(again, sender.header) === valueOf(receivedOf(name)[0] ?? again, sender.header)
      const isNow = await isRight(sender, again, await acceptedKey(sender), time.now())
      expect([isSame, isNow]).toEqual([onlySender || !sender.isTimed, !onlySender])
      expect(valueOf(again, 'X-Relay-Late')).toBe(onlySender ? 'true' : '')
    },
  )

  it.each(named)(
    'what relay makes itself for %s is accepted with the secret, or its own key',
    async (name, sender) => {
      const count = receivedOf(name).length
      const now = { seams: { clock: time.now } }
      const { n } = await lastOf(name)
      expect(await here.runWith(now, 'replay', String(n), '--set', 'more=1')).toMatchObject({ code: 0 })
      await expect.poll(() => receivedOf(name).length).toBe(count + 1)
      const [made = expect.unreachable()] = receivedOf(name).slice(count)
      expect(await isRight(sender, made, await acceptedKey(sender), time.now())).toBe(true)
      expect(await lastOf(name)).toMatchObject({ verifiedBy: sender.alg === 'HS256' ? 'current' : 'own' })
    },
  )

  const bearers = named.filter(([, { digest }]) => digest === undefined)

  it.each(bearers)(
    'another token of %s says what the one that is not stored said, and is never late',
    async (name, sender) => {
      const now = { seams: { clock: time.now } }
      const said = { sub: 'u-1', context: { user: 'Zoë' } }
      const another = { ...sender, body: sender.body.replace('"messageId":"1"', '"messageId":"2"') }
      const request = await jwtRequest(another, urlOf(name), time.now(), { claims: said })
      const count = receivedOf(name).length
      expect(await send(name, request)).toBe(200)
      await expect.poll(() => receivedOf(name).length).toBe(count + 1)
      time.advance(HOUR)
      expect(await here.runWith(now, 'replay', 'last', '--keep-id')).toMatchObject({ code: 0 })
      const got = receivedOf(name).slice(count)
      expect(got.length).toBe(2)
      for (const each of got) {
        const claims = decodeJwt(valueOf(each, sender.header).slice(sender.prefix.length))
        expect(claims).toMatchObject({ ...sender.claims(sender.body, urlOf(name)), ...said })
        expect(['X-Relay-Late', 'X-Relay-Claims'].map((header) => valueOf(each, header))).toEqual(['', ''])
      }
      const exported = await here.run('export', 'last')
      const signature = valueOf(request, sender.header).split('.').at(-1) ?? ''
      expect(exported.out.includes(signature)).toBe(false)
      const ran = await here.runWith(
        { ...now, stdin: exported.out },
        'replay',
        '-',
        '--to',
        `${target.url}/${name}`,
      )
      expect(ran).toMatchObject({ code: 0 })
      const last = decodeJwt(
        valueOf(receivedOf(name).at(-1) ?? request, sender.header).slice(sender.prefix.length),
      )
      expect(last).toMatchObject(said)
    },
  )

  it('compares the qsh of a Jira app with the path from anywhere in the address, and the query', async () => {
    const [, sender = expect.unreachable()] = named.find(([name]) => name === 'jira-app') ?? []
    const sendTo = async (canonical: string, query = ''): Promise<number> => {
      const qsh = createHash('sha256').update(canonical).digest('hex')
      const request = await jwtRequest(sender, urlOf('jira-app'), time.now(), { claims: { qsh } })
      return (await post(`${relay.address}/webhook/jira-app${query}`, request)).status
    }
    const query = '?user_key=a%2Fb&user_id=zo%C3%AB+x&b=2&b=1'
    for (const right of ['POST&/webhook/jira-app&', 'POST&/jira-app&', 'POST&/&'])
      expect([right, await sendTo(right)]).toEqual([right, 200])
    expect(await sendTo('POST&/jira-app&b=1,2&user_id=zo%C3%AB%20x&user_key=a%2Fb', query)).toBe(200)
    for (const wrong of ['GET&/jira-app&', 'POST&/elsewhere&', 'POST&/webhook/jira-app&a=1', 'POST&/app&'])
      expect([wrong, await sendTo(wrong)]).toEqual([wrong, 401])
  })

  it('is answered 503 while the keys cannot be fetched, which is tried once in five seconds', async () => {
    const [, sender = expect.unreachable()] = named.find(([, each]) => each.published) ?? []
    const down = await receiver(503)
    const scheme = sender.scheme.replace('KEYS', `${down.url}/certs`)
    await here.runWith({ stdin: sender.secret }, 'source', 'add', `down=${scheme}`)
    const request = await jwtRequest(sender, urlOf('down'), time.now())
    expect(await send('down', request)).toBe(503)
    expect(await send('down', request)).toBe(503)
    expect(down.received.length).toBe(1)
    await down[Symbol.asyncDispose]()
  })

  it.each([
    ['keys=http://example.com/certs', 'needs keys= with the https address'],
    ['algorithm=none', 'needs algorithm= with '],
    ['algorithm=HS256 keys=https://example.com/certs', 'signs with a secret'],
    ['claim=email', 'needs keys= for claim='],
  ])('has no scheme with %s', async (parts, why) => {
    const ran = await here.runWith({ stdin: 'x' }, 'source', 'add', `bad=jwt header=X-Token ${parts}`)
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining(why) })
  })

  it('takes no public key as the secret of HS256', async () => {
    const key = String(createPublicKey(expectPem()).export({ type: 'spki', format: 'pem' }))
    const ran = await here.runWith({ stdin: key.replaceAll('\n', '') }, 'source', 'add', 'confused=netlify')
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringContaining('a public key, with which everybody could sign'),
    })
  })
})

function expectPem(): string {
  return JWT_SENDERS.find(({ name }) => name === 'own-jwt')?.secret ?? ''
}
