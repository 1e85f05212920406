// What senders with a name send in other cases than the usual one, as their pages and their own programs say.
import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type Header, post, secretVariable, type WebhookRequest } from '../kit/delivery.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { objects } from './example.js'
import { shared } from './fixture.js'

const SECRET = 's3cret-0123456789'
const OTHER = 'an0ther-9876543210'
/** That of Revolut's page. */
const NOW = 1_683_650_202_360

interface Mac {
  readonly algorithm?: 'sha1' | 'sha256'
  readonly encoding?: 'hex' | 'base64'
  readonly key?: string
}

function mac(text: string, { algorithm = 'sha256', encoding = 'hex', key = SECRET }: Mac = {}): string {
  return createHmac(algorithm, key).update(text).digest(encoding)
}

interface Variant {
  readonly of: string
  /** Milliseconds since 1970-01-01 UTC. Default: {@link NOW}. */
  readonly at?: number
  readonly sender: string
  readonly secret?: string
  readonly body: string
  /** Default: JSON. */
  readonly type?: string
  readonly headers: readonly Header[]
  readonly event: string
}

const SECONDS = String(Math.floor(NOW / 1000))
const PERSONA = JSON.stringify({
  data: { type: 'event', id: 'evt_1', attributes: { name: 'inquiry.approved' } },
})
const persona = (keys: readonly string[]): string =>
  keys.map((key) => `t=${SECONDS},v1=${mac(`${SECONDS}.${PERSONA}`, { key })}`).join(' ')
const FLUTTERWAVE = JSON.stringify({ type: 'charge.completed', data: { id: 'chg_1', amount: 25_000 } })
const MOLLIE = JSON.stringify({ resource: 'event', id: 'event_1', type: 'payment-link.paid' })
const mollie = (keys: readonly string[]): readonly string[] =>
  keys.map((key) => `sha256=${mac(MOLLIE, { key })}`)
const PRODUCT = JSON.stringify({ topic: 'Product', action: 'update', handle: 'prices' })
const FRONT = JSON.stringify({ type: 'inbound_received', id: 'evt_1' })
const REVOKED = JSON.stringify({
  subscription: { id: 's-1', type: 'channel.follow', status: 'authorization_revoked' },
})
const ISO = new Date(NOW).toISOString()

const VARIANTS: readonly Variant[] = [
  {
    of: 'version 4 of its API',
    sender: 'flutterwave',
    body: FLUTTERWAVE,
    headers: [['flutterwave-signature', mac(FLUTTERWAVE, { encoding: 'base64' })]],
    event: 'charge.completed',
  },
  {
    of: 'a rule',
    sender: 'front',
    body: FRONT,
    headers: [['X-Front-Signature', mac(FRONT, { algorithm: 'sha1', encoding: 'base64' })]],
    event: 'inbound_received',
  },
  ...[
    [SECRET, OTHER],
    [OTHER, SECRET],
  ].map((keys, i) => ({
    of: `a rotation of secrets, ${['the right one first', 'the right one last'][i]}`,
    sender: 'persona',
    body: PERSONA,
    headers: [['Persona-Signature', persona(keys)]] as const,
    event: 'inquiry.approved',
  })),
  // Mollie sends the header twice: docs.mollie.com/reference/webhooks-new#manual-signature-verification.
  ...[
    { keys: mollie([SECRET, OTHER]), of: 'the right one first' },
    { keys: mollie([OTHER, SECRET]), of: 'the right one last' },
    { keys: [mollie([OTHER, SECRET]).join(', ')], of: 'in one line, as a proxy may write them' },
  ].map(({ keys, of }) => ({
    of: `a rotation of secrets, ${of}`,
    sender: 'mollie',
    body: MOLLIE,
    headers: keys.map((key): Header => ['X-Mollie-Signature', key]),
    event: 'payment-link.paid',
  })),
  {
    // lib/types of @shopify/shopify-api 15 has the names.
    of: 'Events, the successor of its webhooks',
    sender: 'shopify',
    body: PRODUCT,
    headers: [
      ['shopify-topic', 'Product'],
      ['shopify-action', 'update'],
      ['shopify-shop-domain', 'example.myshopify.com'],
      ['shopify-webhook-id', 'a2c5b2d3-0000-4000-8000-000000000001'],
      ['shopify-hmac-sha256', mac(PRODUCT, { encoding: 'base64' })],
    ],
    event: 'Product.update',
  },
  {
    of: 'the example of its page',
    sender: 'revolut',
    secret: 'wsk_r59a4HfWVAKycbCaNO1RvgCJec02gRd8',
    body: '{"data":{"id":"645a7696-22f3-aa47-9c74-cbae0449cc46","new_state":"completed","old_state":"pending","request_id":"app_charges-9f5d5eb3-1e06-46c5-b1c0-3914763e0bcb"},"event":"TransactionStateChanged","timestamp":"2023-05-09T16:36:38.028960Z"}',
    headers: [
      ['Revolut-Request-Timestamp', '1683650202360'],
      ['Revolut-Signature', 'v1=bca326fb378d0da7f7c490ad584a8106bab9723d8d9cdd0d50b4c5b3be3837c0'],
    ],
    event: 'TransactionStateChanged',
  },
  {
    of: 'the example of its page',
    sender: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    at: 1_531_420_618_000,
    type: 'application/x-www-form-urlencoded',
    body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    headers: [
      ['X-Slack-Request-Timestamp', '1531420618'],
      ['X-Slack-Signature', 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503'],
    ],
    event: 'webhook-collect',
  },
  {
    // webhookv3/webhookv3_test.go of PagerDuty/go-pagerduty
    of: 'the test of its own Go package',
    sender: 'pagerduty',
    secret: 'lDQHScfUeXUKaQRNF+8XIiDKZ7XX3itBAYzwU0TARw8lJqRnkKl2iB1anSb0Z+IK',
    body: '{"event":{"id":"01BWDWL3NYY7LUFPZCC28QUCMK","event_type":"incident.priority_updated","resource_type":"incident","occurred_at":"2021-04-26T17:36:27.458Z","agent":{"html_url":"https://acme.pagerduty.com/users/PLH1HKV","id":"PLH1HKV","self":"https://api.pagerduty.com/users/PLH1HKV","summary":"Tenex Engineer","type":"user_reference"},"client":null,"data":{"id":"PGR0VU2","type":"incident","self":"https://api.pagerduty.com/incidents/PGR0VU2","html_url":"https://acme.pagerduty.com/incidents/PGR0VU2","number":2,"status":"triggered","title":"A little bump in the road","service":{"html_url":"https://acme.pagerduty.com/services/PF9KMXH","id":"PF9KMXH","self":"https://api.pagerduty.com/services/PF9KMXH","summary":"API Service","type":"service_reference"},"assignees":[{"html_url":"https://acme.pagerduty.com/users/PTUXL6G","id":"PTUXL6G","self":"https://api.pagerduty.com/users/PTUXL6G","summary":"User 123","type":"user_reference"}],"escalation_policy":{"html_url":"https://acme.pagerduty.com/escalation_policies/PUS0KTE","id":"PUS0KTE","self":"https://api.pagerduty.com/escalation_policies/PUS0KTE","summary":"Default","type":"escalation_policy_reference"},"teams":[{"html_url":"https://acme.pagerduty.com/teams/PFCVPS0","id":"PFCVPS0","self":"https://api.pagerduty.com/teams/PFCVPS0","summary":"Engineering","type":"team_reference"}],"priority":{"html_url":"https://acme.pagerduty.com/account/incident_priorities","id":"PSO75BM","self":"https://api.pagerduty.com/priorities/PSO75BM","summary":"P1","type":"priority_reference"},"urgency":"high","conference_bridge":{"conference_number":1000,"conference_url":"https://example.com"},"resolve_reason":null}}}',
    headers: [
      ['X-PagerDuty-Signature', 'v1=0c0b9495b893a39e70d1fea2fe11fbe0a825f88b9f67846f6cc07dd2bc5476cd'],
    ],
    event: 'incident.priority_updated',
  },
  {
    of: 'a test, which has a type and no name',
    sender: 'discourse',
    body: '{"ping":"OK"}',
    headers: [
      ['X-Discourse-Event-Id', '7'],
      ['X-Discourse-Event-Type', 'ping'],
      ['X-Discourse-Event-Signature', `sha256=${mac('{"ping":"OK"}')}`],
    ],
    event: 'ping',
  },
  {
    // https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#revoking-your-subscription
    of: 'a subscription that has ended, which is none of its events',
    sender: 'twitch',
    body: REVOKED,
    headers: [
      ['Twitch-Eventsub-Message-Id', 't-1'],
      ['Twitch-Eventsub-Message-Type', 'revocation'],
      ['Twitch-Eventsub-Message-Timestamp', ISO],
      ['Twitch-Eventsub-Message-Signature', `sha256=${mac(`t-1${ISO}${REVOKED}`)}`],
    ],
    event: 'revocation',
  },
]

const requestOf = ({ headers, body, type = 'application/json' }: Variant): WebhookRequest => ({
  headers: [['Content-Type', type], ...headers],
  body: Buffer.from(body),
})

describe('a sender with a name', () => {
  const rows = VARIANTS.map((variant, i) => [variant.sender, variant.of, `v${i}`, variant] as const)
  const here = shared(() =>
    place({
      host: 'none',
      env: {
        RELAY_SOURCES: rows.map(([sender, , name]) => `${name}=${sender}`).join('\n'),
        ...Object.fromEntries(rows.map(([, , name, { secret = SECRET }]) => [secretVariable(name), secret])),
      },
    }),
  )
  const time = clock(NOW)
  const relay = shared(() => here.serveWith({ seams: { clock: time.now } }))

  it.each(rows)('%s is taken for %s, and not when a byte is changed', async (_, __, name, variant) => {
    time.set(variant.at ?? NOW)
    const request = requestOf(variant)
    const changed = { ...request, body: Buffer.from(`${variant.body} `) }
    expect(await post(`${relay.address}/webhook/${name}`, changed)).toMatchObject({ status: 401 })
    expect(await post(`${relay.address}/webhook/${name}`, request)).toMatchObject({ status: 200 })
    const [shown] = objects((await here.run('log', '--source', name, '--json')).out)
    expect(shown).toMatchObject({ event: variant.event, verifiedBy: 'current' })
  })
})

describe('WooCommerce', () => {
  // Its id is a hash of the webhook and the second (WC_Webhook::get_new_delivery_id).
  it('sends two orders of one second with one id, and both are deliveries', async () => {
    await using target = await receiver()
    await using here = await place({ host: 'none', env: { [secretVariable('woocommerce')]: SECRET } })
    const relay = await here.serve('--source', 'woocommerce', '--forward', `woocommerce/*=${target.url}`)
    const bodies = ['{"id":1}', '{"id":2}']
    for (const body of bodies) {
      const headers: Header[] = [
        ['Content-Type', 'application/json'],
        ['X-WC-Webhook-Topic', 'order.updated'],
        ['X-WC-Webhook-Delivery-ID', 'a1f2c3d4e5b60718293a4b5c6d7e8f90'],
        ['X-WC-Webhook-Signature', mac(body, { encoding: 'base64' })],
      ]
      const answer = await post(`${relay.address}/webhook/woocommerce`, { headers, body: Buffer.from(body) })
      expect(answer).toMatchObject({ status: 200 })
    }
    await target.has(2)
    expect(target.received.map(({ body }) => String(body)).toSorted()).toEqual(bodies)
  })
})

describe('a sender that sends its secret itself', () => {
  const SENT = [
    {
      // https://buildkite.com/docs/apis/webhooks/pipelines#webhook-token
      sender: 'buildkite',
      secret: SECRET,
      body: { event: 'build.finished' },
      header: ['X-Buildkite-Token', SECRET] as const,
      event: 'build.finished',
    },
    {
      // https://developers.deepgram.com/changelog/2026/10/27
      sender: 'deepgram',
      secret: SECRET,
      body: { metadata: { request_id: 'd-1', extra: { callback_secret: SECRET } } },
      header: ['dg-token', 'key-1'] as const,
      event: 'webhook',
    },
  ]

  it.each(SENT)('$sender is taken, and forwarded with it, also when it is sent again', async (each) => {
    const { sender, body, header, event } = each
    await using target = await receiver()
    await using here = await place({ host: 'none', env: { [secretVariable(sender)]: each.secret } })
    const relay = await here.serve('--source', sender, '--forward', `${sender}/*=${target.url}`)
    const request = (by: string): WebhookRequest => ({
      headers: [['Content-Type', 'application/json'], header].map(([name = '', value = '']) => [
        name,
        value.replace(SECRET, by),
      ]),
      body: Buffer.from(JSON.stringify(body).replace(SECRET, by)),
    })
    const address = `${relay.address}/webhook/${sender}`
    expect(await post(address, request(OTHER))).toMatchObject({ status: 401 })
    expect(await post(address, request(SECRET))).toMatchObject({ status: 200 })
    await target.has(1)
    const [shown] = objects((await here.run('log', '--source', sender, '--json')).out)
    expect(shown).toMatchObject({ event, verifiedBy: 'current' })
    expect(await here.run('replay', String(shown?.['n']), '--to', target.url)).toMatchObject({ code: 0 })
    await target.has(2)
    const [name, value] = header
    for (const { headers } of target.received)
      expect(headers.map(([key, text]) => [key.toLowerCase(), text])).toContainEqual([
        name.toLowerCase(),
        value,
      ])
  })

  it('deepgram does not take the header that proved its requests before', async () => {
    await using here = await place({ host: 'none', env: { [secretVariable('deepgram')]: SECRET } })
    const relay = await here.serve('--source', 'deepgram')
    const headers: Header[] = [
      ['Content-Type', 'application/json'],
      ['dg-token', SECRET],
    ]
    const answer = await post(`${relay.address}/webhook/deepgram`, { headers, body: Buffer.from('{}') })
    expect(answer).toMatchObject({ status: 401 })
  })
})

describe('Box', () => {
  // https://developer.box.com/guides/webhooks/v2: the id in the header changes with each attempt.
  it('sends an event again with another id in the header, and it is the same delivery', async () => {
    await using here = await place({ host: 'none', env: { [secretVariable('box')]: SECRET } })
    const time = clock(NOW)
    const relay = await here.serveWith({ seams: { clock: time.now } }, '--source', 'box')
    const body = JSON.stringify({ type: 'webhook_event', id: 'e-1', trigger: 'FILE.UPLOADED' })
    for (const attempt of ['a-1', 'a-2']) {
      const headers: Header[] = [
        ['Content-Type', 'application/json'],
        ['BOX-DELIVERY-ID', attempt],
        ['BOX-DELIVERY-TIMESTAMP', ISO],
        ['BOX-SIGNATURE-PRIMARY', mac(body + ISO, { encoding: 'base64' })],
      ]
      const answer = await post(`${relay.address}/webhook/box`, { headers, body: Buffer.from(body) })
      expect(answer).toMatchObject({ status: 200 })
    }
    const shown = objects((await here.run('log', '--source', 'box', '--json')).out)
    expect(shown).toMatchObject([{ event: 'FILE.UPLOADED', delivery: 'e-1' }])
  })
})

describe('Contentful', () => {
  // Signed by `signRequest` of @contentful/node-apps-toolkit 3.16.1 at 1700000000000 ms.
  const SIGNED = [
    ['', '6866858039b2ec1153258717f70a78f3e24bcb3ae91bef4be3c56e70b471bce8'],
    ['?team=1&x', 'cb03b0a0475c6a4e53ac3cd7ada318919147734eda162c2770bf34e20eaec754'],
    ['?team=a%20b&key=%C3%A9', 'e32ade30f5ee55231bf32fab54ec442cc79e258c8f96463f849b159124038a07'],
  ] as const
  const BODY = Buffer.from('{"sys":{"id":"1","type":"Entry"}}')
  const here = shared(() =>
    place({
      host: 'none',
      env: { RELAY_PUBLIC_URL: 'https://hooks.example.com', [secretVariable('contentful')]: 's'.repeat(64) },
    }),
  )
  const time = clock(1_700_000_000_000)
  const relay = shared(() => here.serveWith({ seams: { clock: time.now } }, '--source', 'contentful'))
  const send = async (query: string, signature: string): Promise<unknown> => {
    const headers: Header[] = [
      ['Content-Type', 'application/json'],
      ['X-Contentful-Topic', 'ContentManagement.Entry.publish'],
      ['X-Contentful-Timestamp', '1700000000000'],
      [
        'X-Contentful-Signed-Headers',
        'x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic',
      ],
      ['X-Contentful-Signature', signature],
    ]
    return post(`${relay.address}/webhook/contentful${query}`, { headers, body: BODY })
  }

  it.each(SIGNED)('signs the query of its address: %s', async (query, signature) => {
    expect(await send(query, signature)).toMatchObject({ status: 200 })
    expect(await send(`${query}${query === '' ? '?' : ''}&more`, signature)).toMatchObject({ status: 401 })
    expect(await send(`${query}?more=1?`, signature)).toMatchObject({ status: 401 })
  })
})

describe('an answer', () => {
  it('has no body for Xero, which takes none', async () => {
    await using here = await place({ host: 'none', env: { [secretVariable('xero')]: SECRET } })
    const relay = await here.serve('--source', 'xero')
    // The first request of its intent to receive.
    const body = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
    const send = (key: string) =>
      fetch(`${relay.address}/webhook/xero`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'x-xero-signature': mac(body, { key, encoding: 'base64' }),
        },
        body,
      })
    const answers = await Promise.all([send(SECRET), send(OTHER)])
    expect(await Promise.all(answers.map(async (each) => [each.status, await each.text()]))).toEqual([
      [200, ''],
      [401, expect.any(String)],
    ])
  })
})
