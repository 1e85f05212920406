import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type Header, post, type WebhookRequest } from '../kit/delivery.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { flagsOf, requestOf, secretsOf, SENDERS, sentLines } from '../kit/senders.js'
import { objects } from './example.js'
import { fresh, shared } from './fixture.js'

const JSON_TYPE = 'application/json'
const OK = { status: 200, type: JSON_TYPE, body: '{"ok":true}' }
const BAD_SIGNATURE = { status: 401, type: JSON_TYPE, body: '{"error":"Invalid signature"}' }
const BAD_EVENT = { status: 400, type: JSON_TYPE, body: '{"error":"Invalid event"}' }
const NOT_FOUND = { status: 404, type: JSON_TYPE, body: '{"error":"Not found"}' }
const HOUR = 3_600_000
const FORM = 'application/x-www-form-urlencoded'

const senders = Object.entries(SENDERS)
/** And two of them a second time, under another name. */
const sources = [
  ...senders,
  ...['bitbucket', 'plain'].map((name) => [`${name}-2`, SENDERS[name] ?? never()] as const),
]

/** Signatures that senders show, with the secrets of {@link SENDERS}: of which event, when in Unix seconds, of what, and as sent. */
const PUBLISHED: readonly [
  name: string,
  event: string,
  seconds: number | undefined,
  body: string,
  proof: string,
][] = [
  // The specification of Standard Webhooks, and Svix's documentation.
  [
    'standard',
    'webhook',
    1_614_265_330,
    '{"test": 2432232314}',
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  ],
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  [
    'slack-command',
    'webhook-collect',
    1_531_420_618,
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  ],
  // Shopify's own library, lib/webhooks/__tests__/validate.test.ts.
  ['shopify', 'orders/create', undefined, '{"foo": "bar"}', 'B23tXN681gZ0qIWNRrgtzBE9XSDo5yaUu6wfmhu3a7g='],
]

const DOOR = { secret: 'tok-3f9a1c' }

/** The id that relay gives to a delivery whose sender gives none. */
const OWN_ID = expect.stringMatching(/^relay-[\da-f-]{36}$/)

describe('POST /webhook/<source>', () => {
  const time = clock()
  const here = fresh(() => place({ host: 'none', env: secretsOf([...sources, ['door', DOOR]]) }))
  const relay = fresh(() => {
    const others = ['--source', 'door=token header=X-Token', '--source', 'open=none']
    return here.serveWith({ seams: { clock: time.now } }, ...flagsOf(sources), ...others)
  })
  const send = (name: string, request: WebhookRequest) => post(`${relay.address}/webhook/${name}`, request)

  it('stores what each sender signs, at the edges of its tolerance too', async () => {
    const expected: object[] = []
    for (const [name, sender] of senders) {
      const offsets = sender.tolerance === undefined ? [0] : [0, -sender.tolerance, sender.tolerance]
      for (const offset of offsets) {
        const request = await requestOf(sender, time.now() + offset)
        expect([name, offset, await send(name, request)]).toEqual([name, offset, OK])
      }
      expected.push({
        provider: name,
        event: sender.event,
        delivery: sender.id ?? OWN_ID,
        verifiedBy: 'current',
        duplicates: sender.id === undefined ? 0 : offsets.length - 1,
      })
      // Without an id, each is a delivery of its own.
      if (sender.id === undefined)
        expected.push(...Array.from({ length: offsets.length - 1 }, () => ({ provider: name })))
    }
    await relay.stop()
    expect(await linesOf(here)).toMatchObject(expected)
  })

  it.each(PUBLISHED)('takes the example that %s has published', async (name, event, seconds, body, proof) => {
    if (seconds !== undefined) time.set(seconds * 1000)
    const sender = SENDERS[name] ?? never()
    const { headers } = await requestOf(sender, time.now(), { body })
    const given = headers.map(([each, value]): Header => [
      each,
      each.toLowerCase() === sender.proof ? proof : value,
    ])
    expect(await send(name, { headers: given, body: Buffer.from(body) })).toEqual(OK)
    expect(await linesOf(here)).toMatchObject([{ provider: name, event, verifiedBy: 'current' }])
  })

  it('is not that of a source that is not set, or of the code host', async () => {
    const request = await requestOf(SENDERS['stripe'] ?? never(), time.now())
    for (const name of ['nobody', 'github', 'Stripe', 'stripe/', ''])
      expect([name, await send(name, request)]).toEqual([name, NOT_FOUND])
    expect(await post(`${relay.address}/webhook`, request)).toEqual(BAD_SIGNATURE)
    expect(await linesOf(here)).toEqual([])
  })

  it('counts a delivery once for each source and id, and each without an id', async () => {
    const expected: object[] = []
    // Two sources of one scheme, whose sender gives the same id to both.
    for (const name of ['bitbucket', 'bitbucket-2', 'plain', 'plain-2'])
      for (const body of ['{"a":1}', '{"a":2}']) {
        const sender = SENDERS[name.replace('-2', '')] ?? never()
        const request = await requestOf(sender, time.now(), { body })
        for (let i = 0; i < 2; i++) expect([name, await send(name, request)]).toEqual([name, OK])
        if (sender.id === undefined)
          expected.push(...[1, 2].map(() => ({ provider: name, delivery: OWN_ID, duplicates: 0 })))
        else if (body === '{"a":1}') expected.push({ provider: name, delivery: sender.id, duplicates: 3 })
      }
    await relay.stop()
    expect(await linesOf(here)).toMatchObject(expected)
  })

  it('takes a body of any type from senders of one’s own, byte for byte, and only JSON from others', async () => {
    const bodies: [type: string | undefined, body: Uint8Array][] = [
      ['application/octet-stream', Uint8Array.of(0, 255, 13, 10, 0xef, 0xbb, 0xbf)],
      ['text/xml; charset=utf-8', Buffer.from('<a/>')],
      [FORM, Buffer.from('a=1&a=2&%zz')],
      [undefined, Buffer.from('')],
      [JSON_TYPE, Buffer.from('{"broken":')],
    ]
    const expected: unknown[] = []
    for (const [type, bytes] of bodies) {
      const body = Buffer.from(bytes)
      const of: Header[] = type === undefined ? [] : [['Content-Type', type]]
      const signature = createHmac('sha256', 's3cret').update(body).digest('hex')
      const proofs: Record<string, Header[]> = {
        plain: [['X-Signature', signature]],
        door: [['X-Token', DOOR.secret]],
        open: [],
      }
      for (const [name, proof] of Object.entries(proofs)) {
        expect([name, type, await send(name, { headers: [...of, ...proof], body })]).toEqual([name, type, OK])
        expected.push({ provider: name, event: 'webhook', delivery: OWN_ID, size: body.byteLength })
      }
    }
    const stored = await linesOf(here)
    expect(stored).toMatchObject(expected)
    const numbers = stored.flatMap(({ n, provider }) => (provider === 'plain' ? [String(n)] : []))
    await using target = await receiver()
    const { code } = await here.run('replay', ...numbers, '--keep-id', '--to', target.url)
    expect([code, target.received.map(({ body }) => body)]).toEqual([
      0,
      bodies.map(([, body]) => Buffer.from(body)),
    ])
    for (const body of ['no JSON', '', '{"id":1}{}'])
      expect([
        body,
        await send('stripe', await requestOf(SENDERS['stripe'] ?? never(), time.now(), { body })),
      ]).toEqual([body, BAD_EVENT])
  })
})

/** Each defect that a request can have, and when it was made. */
const DEFECTS: readonly [
  defect: string,
  change: (request: WebhookRequest, proof: string) => WebhookRequest,
][] = [
  ['one byte changed', ({ headers, body }) => ({ headers, body: otherByte(body) })],
  ['a byte more', ({ headers, body }) => ({ headers, body: Buffer.concat([body, Buffer.from(' ')]) })],
  ['no signature', ({ headers, body }, proof) => ({ headers: without(headers, proof), body })],
  [
    'two signature lines',
    ({ headers, body }, proof) => ({
      headers: headers.flatMap((line) => (line[0].toLowerCase() === proof ? [line, line] : [line])),
      body,
    }),
  ],
  [
    'an empty signature',
    ({ headers, body }, proof) => ({
      headers: headers.map(([name, value]): Header => [name, name.toLowerCase() === proof ? '' : value]),
      body,
    }),
  ],
]

describe('a request that is refused', () => {
  const time = clock()
  const here = shared(() => place({ host: 'none', env: secretsOf(senders) }))
  const relay = shared(() => here.serveWith({ seams: { clock: time.now } }, ...flagsOf(senders)))

  it.each(senders)('of %s: each of its defects, and nothing is stored', async (name, sender) => {
    const send = (request: WebhookRequest) => post(`${relay.address}/webhook/${name}`, request)
    for (const [defect, change] of DEFECTS) {
      const request = change(await requestOf(sender, time.now()), sender.proof)
      expect([defect, await send(request)]).toEqual([defect, BAD_SIGNATURE])
    }
    // In the form of this sender's secrets, so that it counts for the same header.
    const secret = sender.secret.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, (last) => (last === '0' ? '1' : '0'))
    expect(await send(await requestOf(sender, time.now(), { secret }))).toEqual(BAD_SIGNATURE)
    expect(await linesOf(here)).toEqual([])
  })

  it.each(senders.filter(([, { tolerance }]) => tolerance !== undefined))(
    'of %s: one that is too old or of the future, and the list says how far its clock is off',
    async (name, sender) => {
      const { tolerance = 0 } = sender
      for (const drift of [-tolerance - 1000, tolerance + 1000, -HOUR, HOUR]) {
        const request = await requestOf(sender, time.now() + drift)
        expect([drift, await post(`${relay.address}/webhook/${name}`, request)]).toEqual([
          drift,
          BAD_SIGNATURE,
        ])
        const [refused] = objects((await here.run('log', '--refused', '--json', '--last', '1')).out)
        const side = drift < 0 ? 'behind' : 'ahead of'
        expect(refused).toMatchObject({
          source: name,
          status: 401,
          kind: 'invalid_signature',
          reason: expect.stringContaining(
            `its signed time is ${Math.abs(drift) / 1000} s ${side} this machine's clock`,
          ),
        })
      }
      expect(await linesOf(here)).toEqual([])
    },
  )
})

describe('Slack', () => {
  const slack = SENDERS['slack'] ?? never()
  const time = clock()
  const sources = [['slack', slack] as const, ['stripe', SENDERS['stripe'] ?? never()] as const]
  const here = fresh(() => place({ host: 'none', env: secretsOf(sources) }))
  const relay = fresh(() => here.serveWith({ seams: { clock: time.now } }, ...flagsOf(sources)))

  it('is answered with its challenge, if it signed it', async () => {
    const body =
      '{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}'
    const address = `${relay.address}/webhook/slack`
    const wrong = await requestOf(slack, time.now(), { body, secret: 'other' })
    expect(await post(address, wrong)).toEqual(BAD_SIGNATURE)
    expect(await post(address, await requestOf(slack, time.now() - HOUR, { body }))).toEqual(BAD_SIGNATURE)
    expect(await post(address, await requestOf(slack, time.now(), { body }))).toEqual({
      status: 200,
      type: JSON_TYPE,
      body: '{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}',
    })
    const other = await requestOf(SENDERS['stripe'] ?? never(), time.now(), { body })
    expect(await post(`${relay.address}/webhook/stripe`, other)).toEqual(OK)
  })

  it('tests the certificate of an address without a signature', async () => {
    const before = (await linesOf(here)).length
    const address = `${relay.address}/webhook/slack`
    const form = (body: string, type = FORM): WebhookRequest => ({
      headers: [['Content-Type', type]],
      body: Buffer.from(body),
    })
    expect(await post(address, form('ssl_check=1&token=x'))).toEqual(OK)
    for (const body of ['ssl_check=0&token=x', 'token=x', `ssl_check=1&text=${'x'.repeat(2000)}`])
      expect([body, await post(address, form(body))]).toEqual([body, BAD_SIGNATURE])
    expect(await post(address, form('ssl_check=1', 'text/plain'))).toEqual(BAD_SIGNATURE)
    expect(await post(`${relay.address}/webhook/stripe`, form('ssl_check=1'))).toEqual(BAD_SIGNATURE)
    expect(await linesOf(here)).toHaveLength(before)
  })
})

describe('a token', () => {
  const TOKEN = DOOR.secret
  const SOURCES = [
    ['door', { scheme: 'token header=X-Token event=X-Kind', secret: TOKEN }],
    ['bearer', { scheme: 'token header=Authorization prefix=Bearer', secret: TOKEN }],
    ['gitlab', { scheme: 'gitlab', secret: TOKEN }],
  ] as const
  const lines: Readonly<Record<string, Header>> = {
    door: ['X-Token', TOKEN],
    bearer: ['Authorization', `Bearer ${TOKEN}`],
    gitlab: ['X-Gitlab-Token', TOKEN],
  }
  const BODY = Buffer.from('{"object_kind":"push"}')
  const with_ = (line: Header): WebhookRequest => ({
    headers: [['Content-Type', JSON_TYPE], ['X-Kind', 'bell'], ['X-Gitlab-Event', 'Push Hook'], line],
    body: BODY,
  })

  it('proves a request, is never stored or shown, and is there again where it is forwarded', async () => {
    await using received = await receiver()
    await using here = await place({ host: 'none', env: secretsOf(SOURCES) })
    const relay = await here.serve(...flagsOf(SOURCES, received.url))
    for (const [name, line] of Object.entries(lines)) {
      const send = (request: WebhookRequest) => post(`${relay.address}/webhook/${name}`, request)
      const [header, value] = line
      for (const wrong of [`${value}x`, value.slice(0, -1), value.toUpperCase(), ''])
        expect([name, wrong, await send(with_([header, wrong]))]).toEqual([name, wrong, BAD_SIGNATURE])
      const twice = with_(line)
      expect(await send({ ...twice, headers: [...twice.headers, line] })).toEqual(BAD_SIGNATURE)
      expect(await send(with_(line))).toEqual(OK)
    }
    await received.has(3)
    // In any order: each goes to a target of its own.
    const forwarded = Object.fromEntries(received.received.map((each) => [each.path.slice(1), each]))
    for (const [name, line] of Object.entries(lines)) {
      const each = forwarded[name] ?? never()
      expect([name, sentLines(each), each.body]).toEqual([name, with_(line).headers, BODY])
    }
    const shown = ['1', '2', '3', 'refused:1', 'refused:5'].flatMap((which) => [
      here.run('show', which),
      here.run('show', which, '--json'),
    ])
    const printed = (await Promise.all(shown)).map(({ out, err }) => out + err).join('')
    expect(printed).toContain('X-Kind')
    await relay.stop()
    expect([printed + relay.out + relay.err, ...filesIn(here.home)].join('')).not.toContain(TOKEN)
  })

  it('of GitLab is not asked for where a signing token is set, and does not do in its place', async () => {
    const gitlab = SENDERS['gitlab'] ?? never()
    await using here = await place({ host: 'none', env: secretsOf([['gitlab', gitlab]]) })
    const relay = await here.serve('--source', 'gitlab')
    const send = (request: WebhookRequest) => post(`${relay.address}/webhook/gitlab`, request)
    expect(await send(with_(['X-Gitlab-Token', gitlab.secret]))).toEqual(BAD_SIGNATURE)
    const signed = await requestOf(gitlab, Date.now())
    expect(await send({ ...signed, headers: [...signed.headers, ['X-Gitlab-Token', TOKEN]] })).toEqual(OK)
  })
})

describe('a source that proves nothing', () => {
  it('is marked as unverified, and is taken only by routes that name it', async () => {
    await using received = await receiver()
    await using here = await place({ host: 'none' })
    const file = (name: string): string => path.join(here.cwd, name)
    const flags = {
      '--source': ['open=none event=$.kind'],
      '--forward': [`*=${received.url}/all`, `open/*=${received.url}/open`],
      '--exec': ['*=echo ran >> "$RAN"', 'open/bell=printf %s "$RELAY_SOURCE" >> "$NAMED"'],
    }
    const argv = Object.entries(flags).flatMap(([flag, values]) => values.flatMap((value) => [flag, value]))
    const relay = await here.serveWith({ env: { RAN: file('ran'), NAMED: file('named') } }, ...argv)
    const open = { headers: [['Content-Type', 'text/plain'] as const], body: Buffer.from('{"kind":"bell"}') }
    expect(await post(`${relay.address}/webhook/open`, open)).toEqual(OK)
    await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 2)
    expect(await linesOf(here)).toMatchObject([{ provider: 'open', event: 'bell', verifiedBy: 'none' }])
    // What waited before it has had its turn.
    expect(await relay.deliver()).toEqual(OK)
    await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 4)
    expect(received.received.map((each) => each.path)).toEqual(['/open', '/all'])
    expect([readFileSync(file('ran'), 'utf8'), readFileSync(file('named'), 'utf8')]).toEqual([
      'ran\n',
      'open',
    ])
  })

  it('takes nothing from a web page, which a browser on this machine can show', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--source', 'open=none')
    const of: Header[] = [
      ['Content-Type', 'text/plain'],
      ['Origin', 'https://example.com'],
    ]
    const page = { headers: of, body: Buffer.from('{}') }
    expect(await post(`${relay.address}/webhook/open`, page)).toMatchObject({ status: 403 })
    expect(await linesOf(here)).toEqual([])
  })

  it('is refused where others can reach it', async () => {
    await using here = await place({ host: 'none' })
    const { code, err } = await here.run('serve', '--port', '0', '--host', '0.0.0.0', '--source', 'open=none')
    expect(code).toBe(2)
    expect(err).toContain('open')
  })
})

function otherByte(body: Uint8Array): Buffer {
  const other = Buffer.from(body)
  const at = other.length - 2
  other[at] = (other[at] ?? 0) ^ 1
  return other
}

function without(headers: readonly Header[], name: string): readonly Header[] {
  return headers.filter(([each]) => each.toLowerCase() !== name)
}

/** The bytes of every file of a folder, as text in which ASCII is found. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [readFileSync(path.join(entry.parentPath, entry.name), 'latin1')] : [],
  )
}

function never(): never {
  throw new Error('there is no such sender')
}
