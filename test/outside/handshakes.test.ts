import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { secretVariable } from '../kit/delivery.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { objects } from './example.js'
import { fresh, shared } from './fixture.js'

const SECRET = 'S3cr3t_Key_0123456789abcdef'
const JSON_TYPE = 'application/json'
const FORM = 'application/x-www-form-urlencoded'
const TEXT = 'text/plain'

const hmac = (text: string, encoding: 'hex' | 'base64' = 'hex'): string =>
  createHmac('sha256', SECRET).update(text).digest(encoding)

interface Asked {
  readonly method: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** True if the sender signs it. */
  readonly signed?: true
}
type Row = readonly [
  sender: string,
  asked: Asked,
  type: string,
  body: string,
  headers?: Record<string, string>,
]

const HUB = 'hub.mode=subscribe&hub.challenge=1158201444'
const hub = (token: string): Asked => ({ method: 'GET', query: `${HUB}&hub.verify_token=${token}` })
const json = (value: object): Pick<Asked, 'headers' | 'body'> => ({
  headers: { 'content-type': JSON_TYPE },
  body: JSON.stringify(value),
})
const form = (body: string): Pick<Asked, 'headers' | 'body'> => ({ headers: { 'content-type': FORM }, body })

/** The request of each sender as its page shows it, and what it must be answered. `TOKEN` stands for the verify token. */
const ROWS: readonly Row[] = [
  ['meta', hub('TOKEN'), TEXT, '1158201444'],
  ['whatsapp', hub('TOKEN'), TEXT, '1158201444'],
  ['strava', hub('TOKEN'), JSON_TYPE, '{"hub.challenge":"1158201444"}'],
  ['websub', { method: 'GET', query: HUB }, TEXT, '1158201444'],
  ['websub', { method: 'GET', query: HUB.replace('sub', 'unsub') }, TEXT, '1158201444'],
  [
    'websub',
    { method: 'GET', query: 'hub.mode=denied&hub.topic=https%3A%2F%2Fblog.example.com%2F&hub.reason=no' },
    TEXT,
    'ok',
  ],
  ['dropbox', { method: 'GET', query: 'challenge=abc' }, TEXT, 'abc'],
  ['nylas', { method: 'GET', query: 'challenge=bc609b38-c81f' }, TEXT, 'bc609b38-c81f'],
  [
    'okta',
    { method: 'GET', headers: { 'x-okta-verification-challenge': 'q7_Aq' } },
    JSON_TYPE,
    '{"verification":"q7_Aq"}',
  ],
  [
    'x',
    { method: 'GET', query: 'crc_token=9b4507b3-9040-4669' },
    JSON_TYPE,
    `{"response_token":"sha256=${hmac('9b4507b3-9040-4669', 'base64')}"}`,
  ],
  ['mailchimp', { method: 'GET' }, TEXT, 'ok'],
  ['trello', { method: 'HEAD' }, TEXT, ''],
  ['intercom', { method: 'HEAD' }, TEXT, ''],
  ['mandrill', { method: 'HEAD' }, TEXT, ''],
  [
    'event-grid',
    { method: 'OPTIONS', headers: { 'webhook-request-origin': 'eventgrid.azure.net' } },
    TEXT,
    '',
    { 'webhook-allowed-origin': 'eventgrid.azure.net', 'webhook-allowed-rate': '*' },
  ],
  [
    'event-grid',
    {
      method: 'POST',
      ...json([
        {
          eventType: 'Microsoft.EventGrid.SubscriptionValidationEvent',
          data: { validationCode: '512d38b6', validationUrl: 'https://rp.example/' },
        },
      ]),
    },
    JSON_TYPE,
    '{"validationResponse":"512d38b6"}',
  ],
  [
    'zoom',
    {
      method: 'POST',
      signed: true,
      ...json({ event: 'endpoint.url_validation', payload: { plainToken: 'qgg8vlvZRS6' }, event_ts: 1 }),
    },
    JSON_TYPE,
    `{"plainToken":"qgg8vlvZRS6","encryptedToken":"${hmac('qgg8vlvZRS6')}"}`,
  ],
  [
    'microsoft-graph',
    {
      method: 'POST',
      query: 'validationToken=Validation%3A+Testing+client+a1b2',
      headers: { 'content-type': TEXT },
    },
    TEXT,
    'Validation: Testing client a1b2',
  ],
  [
    'smartsheet',
    {
      method: 'POST',
      headers: { 'content-type': JSON_TYPE, 'smartsheet-hook-challenge': 'c-1' },
      body: '{"challenge":"c-1","webhookId":1}',
    },
    JSON_TYPE,
    '{"smartsheetHookResponse":"c-1"}',
    { 'smartsheet-hook-response': 'c-1' },
  ],
  [
    'monday',
    { method: 'POST', ...json({ challenge: '3eZbrw1aBm2' }) },
    JSON_TYPE,
    '{"challenge":"3eZbrw1aBm2"}',
  ],
  [
    'twitch',
    {
      method: 'POST',
      signed: true,
      headers: {
        'content-type': JSON_TYPE,
        'twitch-eventsub-message-type': 'webhook_callback_verification',
      },
      body: '{"challenge":"pogchamp-kappa","subscription":{}}',
    },
    TEXT,
    'pogchamp-kappa',
  ],
  ['discord', { method: 'POST', signed: true, ...json({ id: '1', type: 1 }) }, JSON_TYPE, '{"type":1}'],
  [
    'slack',
    { method: 'POST', signed: true, ...json({ token: 'x', challenge: '3eZb', type: 'url_verification' }) },
    JSON_TYPE,
    '{"challenge":"3eZb"}',
  ],
  [
    'front',
    {
      method: 'POST',
      signed: true,
      headers: { 'content-type': JSON_TYPE, 'x-front-challenge': 'f-1a2b3c' },
      body: '{"type":"sync","authorization":{"id":"cmp_abc"}}',
    },
    JSON_TYPE,
    '{"challenge":"f-1a2b3c"}',
  ],
  ['slack', { method: 'POST', ...form('token=x&ssl_check=1') }, JSON_TYPE, '{"ok":true}'],
  ['woocommerce', { method: 'POST', ...form('webhook_id=5') }, TEXT, 'ok'],
  [
    'braintree',
    { method: 'GET', query: 'bt_challenge=20f9f8ed05f77439fe95' },
    TEXT,
    hmac('20f9f8ed05f77439fe95'),
  ],
  [
    'dropbox-sign',
    {
      method: 'POST',
      signed: true,
      headers: { 'content-type': 'multipart/form-data; boundary=b-1' },
      body: '--b-1\r\nContent-Disposition: form-data; name="json"\r\n\r\n{"event":{"event_type":"callback_test","event_time":"1525470811"}}\r\n--b-1--\r\n',
    },
    TEXT,
    'Hello API Event Received',
  ],
]
const OBJECTS = ROWS.map(([name, asked, type, body, headers = {}]) => ({ name, asked, type, body, headers }))
const NAMES = [...new Set(ROWS.map(([name]) => name))]

const here = shared(() =>
  place({
    host: 'none',
    env: Object.fromEntries(NAMES.map((name) => [secretVariable(`my-${name}`), SECRET])),
  }),
)
const relay = shared(() =>
  here.serve(
    ...NAMES.flatMap((name) => [
      '--source',
      `my-${name}=hmac header=X-Signature event=$.type handshake=${name}`,
    ]),
  ),
)

async function ask(name: string, { method, query = '', headers = {}, body, signed }: Asked) {
  const response = await fetch(`${relay.address}/webhook/${name}${query === '' ? '' : `?${query}`}`, {
    method,
    headers: { ...headers, ...(signed && { 'x-signature': hmac(body ?? '') }) },
    ...(body !== undefined && { body }),
  })
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  }
}

async function tokenOf(name: string): Promise<string> {
  const { out } = await here.run('source', 'list', '--json')
  return String(objects(out).find((each) => each['name'] === name)?.['verifyToken'])
}

const withToken = async (name: string, asked: Asked): Promise<Asked> => ({
  ...asked,
  ...(asked.query !== undefined && { query: asked.query.replace('TOKEN', await tokenOf(name)) }),
})

const listed = async () => objects((await here.run('log', '--refused', '--json', '--last', '100')).out)

describe('a handshake', () => {
  it.each(OBJECTS)(
    'of $name is answered as its sender expects',
    async ({ name, asked, type, body, headers }) => {
      const source = `my-${name}`
      const answer = await ask(source, await withToken(source, asked))
      expect(answer).toMatchObject({
        status: 200,
        body,
        headers: { 'content-type': type, 'x-content-type-options': 'nosniff', ...headers },
      })
    },
  )

  it('is a line and listed, and no delivery', async () => {
    const all = await listed()
    for (const name of NAMES)
      expect([name, all.find(({ source }) => source === `my-${name}`)]).toMatchObject([
        name,
        { kind: 'handshake', status: 200 },
      ])
    expect(await linesOf(here)).toEqual([])
    expect(relay.err).toMatch(/handshake of my-zoom: endpoint\.url_validation answered 200/)
    expect(relay.err).toMatch(/handshake of my-trello: HEAD answered 200/)
  })

  it.each(OBJECTS.filter(({ asked }) => asked.signed))(
    'of $name is answered only if it is signed',
    async ({ name, asked }) => {
      const { signed: _, ...unsigned } = asked
      const refused = { status: 401, body: '{"error":"Invalid signature"}' }
      expect(await ask(`my-${name}`, unsigned)).toMatchObject(refused)
      expect(
        await ask(`my-${name}`, { ...unsigned, headers: { ...asked.headers, 'x-signature': hmac('{}') } }),
      ).toMatchObject(refused)
    },
  )

  it('with another verify token is refused, and says where the right one is', async () => {
    for (const token of [
      '',
      'v',
      SECRET,
      `${await tokenOf('my-meta')}0`,
      await tokenOf('my-meta').then((t) => t.toUpperCase()),
    ])
      expect([token, await ask('my-meta', hub(token))]).toEqual([
        token,
        expect.objectContaining({ status: 403, body: '{"error":"Wrong verify token"}' }),
      ])
    expect(await ask('my-meta', { method: 'GET', query: HUB })).toMatchObject({ status: 403 })
    const [last] = (await listed()).filter(({ source }) => source === 'my-meta').slice(-1)
    expect(last).toMatchObject({
      kind: 'handshake',
      status: 403,
      reason:
        'handshake hub.challenge: the parameter ?hub.verify_token is not the verify token of this source, which relay source list shows',
    })
  })

  it.each([
    ['too long', 'x'.repeat(1025)],
    ['a line break', 'a%0d%0ab'],
    ['a control character', 'a%00b'],
    ['another script', '%D1%84'],
    ['HTML', '%3Cscript%3Ealert(1)%3C/script%3E'],
    ['nothing', ''],
  ])('is not answered with %s', async (_, challenge) => {
    for (const [name, place] of [
      ['my-dropbox', 'challenge'],
      ['my-websub', 'hub.mode=subscribe&hub.challenge'],
      ['my-x', 'crc_token'],
    ] as const)
      expect([name, await ask(name, { method: 'GET', query: `${place}=${challenge}` })]).toEqual([
        name,
        expect.objectContaining({ status: 400, body: '{"error":"Invalid challenge"}' }),
      ])
  })

  it('signs nothing for whoever asks that then proves a delivery', async () => {
    for (const [name, place, challenge] of [
      ['my-x', 'crc_token', 'type=paid'],
      ['my-x', 'crc_token', 'abc'],
      ['my-braintree', 'bt_challenge', '20f9f8ed05f77439fe95'],
    ] as const) {
      const answer = await ask(name, { method: 'GET', query: `${place}=${encodeURIComponent(challenge)}` })
      expect([name, answer.status]).toEqual([name, 200])
      const sent = { method: 'POST', body: challenge, signed: true } as const
      expect([name, (await ask(name, sent)).status]).toEqual([name, 401])
    }
  })

  it('signs no body and no time for whoever asks', async () => {
    for (const token of ['{"a":1}', 'v0:1:{}', '1.2', '"a"', '[1]'])
      expect(
        await ask('my-x', { method: 'GET', query: `crc_token=${encodeURIComponent(token)}` }),
      ).toMatchObject({
        status: 400,
      })
  })

  it('with anything beside it is a delivery', async () => {
    expect(await ask('my-monday', { method: 'POST', ...json({ challenge: 'a', event: {} }) })).toMatchObject({
      status: 401,
    })
    expect(await ask('my-woocommerce', { method: 'POST', ...form('webhook_id=5&a=b') })).toMatchObject({
      status: 401,
    })
    const large = { challenge: 'a'.repeat(5000) }
    expect(await ask('my-monday', { method: 'POST', ...json(large) })).toMatchObject({ status: 401 })
  })
})

describe('a sender with a name', () => {
  // These have other proofs than a key of one's own, or are another's in all but the name.
  const OTHERS = new Set(['braintree', 'discord', 'monday', 'whatsapp'])
  const named = OBJECTS.filter(({ name, asked }) => !asked.signed && !OTHERS.has(name))
  const names = [...new Set(named.map(({ name }) => name))]
  const own = shared(() =>
    place({ host: 'none', env: Object.fromEntries(names.map((name) => [secretVariable(name), SECRET])) }),
  )
  const serving = shared(() => own.serve(...names.flatMap((name) => ['--source', name])))

  it.each(named)(
    'is answered as one of your own with handshake=$name',
    async ({ name, asked, type, body }) => {
      const { out } = await own.run('source', 'list', '--json')
      const token = String(objects(out).find((each) => each['name'] === name)?.['verifyToken'])
      const { method, query = '', headers = {}, body: sent } = asked
      const response = await fetch(`${serving.address}/webhook/${name}?${query.replace('TOKEN', token)}`, {
        method,
        headers,
        ...(sent !== undefined && { body: sent }),
      })
      const answer = [response.status, response.headers.get('content-type'), await response.text()]
      expect(answer).toEqual([200, type, body])
    },
  )
})

describe('the package of Braintree', () => {
  it('answers its challenge as relay does, and what it tests is no delivery', async () => {
    const braintree = createRequire(import.meta.url)('braintree')
    const gateway = new braintree.BraintreeGateway({
      environment: braintree.Environment.Sandbox,
      merchantId: 'm',
      publicKey: 'public_1',
      privateKey: SECRET,
    })
    await using own = await place({
      host: 'none',
      env: { [secretVariable('braintree')]: `public_1:${SECRET}` },
    })
    const serving = await own.serve('--source', 'braintree')
    const challenge = '20f9f8ed05f77439fe955c977e4c8a53'
    const response = await fetch(`${serving.address}/webhook/braintree?bt_challenge=${challenge}`)
    expect([response.status, await response.text()]).toEqual([
      200,
      gateway.webhookNotification.verify(challenge),
    ])
    for (const wrong of ['x'.repeat(20), 'ab', 'A'.repeat(20)])
      expect((await fetch(`${serving.address}/webhook/braintree?bt_challenge=${wrong}`)).status).toBe(400)
    expect(await linesOf(own)).toEqual([])
  })
})

describe('a GET, HEAD or OPTIONS that no handshake knows', () => {
  it('is answered 405, and listed with what it asked', async () => {
    const wrong = { status: 405, body: '{"error":"Method not allowed"}' }
    expect(
      await ask('my-zoom', { method: 'GET', query: 'hub.challenge=1&hub.verify_token=a' }),
    ).toMatchObject(wrong)
    expect(await ask('my-dropbox', { method: 'GET', query: 'check=1' })).toMatchObject(wrong)
    expect(await ask('my-zoom', { method: 'HEAD' })).toMatchObject({ ...wrong, body: '' })
    expect((await listed()).filter(({ kind }) => kind === 'question')).toMatchObject([
      {
        source: 'my-zoom',
        kind: 'question',
        status: 405,
        reason: 'GET with hub.challenge, hub.verify_token in its query: no handshake of hmac',
      },
      { source: 'my-dropbox', kind: 'question', reason: 'GET with check in its query: no handshake of hmac' },
      { source: 'my-zoom', kind: 'question', reason: 'HEAD: no handshake of hmac' },
    ])
  })
})

describe('handshake=', () => {
  it('needs a name that relay knows, and a secret where the answer is made of one', async () => {
    const unknown = await here.run('serve', '--source', 'a=hmac header=X-Signature handshake=zooom')
    expect(unknown.err).toMatch(/needs handshake= with .*zoom/)
    const open = await here.run('serve', '--source', 'a=none handshake=zoom')
    expect(open.err).toMatch(/has no secret, which handshake=zoom needs/)
  })
})

const BROUGHT: readonly (readonly [string, Asked, string, object])[] = [
  [
    'asana',
    {
      method: 'POST',
      headers: { 'content-type': JSON_TYPE, 'x-hook-secret': 'b537207f20cbfa02' },
      body: '{}',
    },
    'x-hook-signature',
    { status: 200, body: '', headers: { 'x-hook-secret': 'b537207f20cbfa02' } },
  ],
  [
    'notion',
    { method: 'POST', ...json({ verification_token: 'secret_tMrlL1qK5v' }) },
    'x-notion-signature',
    { status: 200, body: 'ok' },
  ],
]

describe('a secret that a handshake brings', () => {
  const own = fresh(() => place({ host: 'none' }))
  const serving = fresh(() => own.serve())

  async function send(
    name: string,
    { method, headers = {}, body }: Asked,
    more: Record<string, string> = {},
  ) {
    const request = { method, headers: { ...headers, ...more }, ...(body !== undefined && { body }) }
    const response = await fetch(`${serving.address}/webhook/${name}`, request)
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: await response.text(),
    }
  }

  it.each(BROUGHT)(
    'is taken of %s while relay source add waits, and then proves',
    async (name, asked, header, answer) => {
      expect(await send(name, asked)).toMatchObject({ status: 404 })
      await using adding = own.start('source', 'add', name, '--handshake')
      await adding.says(`Waiting for the handshake of ${name}`)
      expect(await send(name, { method: 'POST', ...json({ a: 1 }) })).toMatchObject({ status: 404 })
      expect(await send(name, asked)).toMatchObject(answer)
      const { code, err } = await adding.ended
      expect([code, err]).toEqual([0, expect.stringContaining(`Stored the secret of ${name}`)])
      const secret = asked.headers?.['x-hook-secret'] ?? 'secret_tMrlL1qK5v'
      expect(err.includes(secret)).toBe(name === 'notion')
      const body = '{"type":"page.created","id":"1"}'
      const digest = createHmac('sha256', secret).update(body).digest('hex')
      const signed = { [header]: name === 'notion' ? `sha256=${digest}` : digest }
      expect(
        await send(name, { method: 'POST', headers: { 'content-type': JSON_TYPE }, body }, signed),
      ).toMatchObject({
        status: 200,
        body: '{"ok":true}',
      })
      const other = {
        ...asked,
        ...(name === 'asana' && { headers: { ...asked.headers, 'x-hook-secret': 'other' } }),
      }
      expect(await send(name, other)).toMatchObject({
        status: 403,
        body: '{"error":"No secret is expected"}',
      })
      const last = objects((await own.run('log', '--refused', '--json')).out).find(
        ({ status }) => status === 403,
      )
      for (const { id } of objects((await own.run('log', '--refused', '--json')).out)) {
        if (id === undefined) continue
        const { out } = await own.run('show', `refused:${Number(id)}`, '--json')
        expect([out.includes(secret), out.includes('x-hook-secret')]).toEqual([false, false])
      }
      expect(last?.['reason']).toMatch(`while relay source add ${name} --handshake waits for it`)
    },
  )

  it('is waited for until Ctrl-C', async () => {
    await using adding = own.start('source', 'add', 'asana', '--handshake')
    await adding.says('Waiting for the handshake of asana')
    expect(await adding.stop('SIGINT')).toMatchObject({ code: 130 })
    expect((await own.run('source', 'list')).err).toMatch('There are no sources')
  })

  it('is brought by some senders alone, and needs a running relay', async () => {
    expect((await own.run('source', 'add', 'stripe', '--handshake')).err).toMatch(
      'No handshake of stripe brings a secret: give the one that it shows',
    )
    await serving.stop()
    expect((await own.run('source', 'add', 'asana', '--handshake')).err).toMatch(
      'Only a running relay gets the handshake. Start it with relay serve',
    )
  })
})
