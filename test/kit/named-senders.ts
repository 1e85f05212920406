// Senders that relay knows by name, signed as each one's own page or package says, by code that is not relay's.
import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { Mux } from '@mux/mux-node'
import { Paddle } from '@paddle/paddle-node-sdk'
import { isValidSignature } from '@sanity/webhook'
import { WorkOS } from '@workos-inc/node'
import Razorpay from 'razorpay'
import twilio from 'twilio'
import { vi } from 'vitest'
import type { Header } from './delivery.js'
import type { OwnSender, Sent } from './own-senders.js'

/** A sender with a name; `scheme` is that. */
export interface NamedSender extends OwnSender {
  /** How relay lists it. */
  readonly event: string
  /** Undefined: it has none, and each request is a delivery of its own. */
  readonly id: string | undefined
  /**
   * What the sender's package says of a request to this address, at this time in milliseconds since 1970-01-01 UTC.
   * @throws Error if it would refuse it; it may return false, too
   */
  readonly verify?: (request: Sent, url: string, now: number) => unknown
}

type Algorithm = 'sha1' | 'sha256' | 'sha384' | 'sha512' | 'md5'
type Encoding = 'hex' | 'base64' | 'base64url'

/** Packages without types of their own. */
const load = createRequire(import.meta.url)

const SECRET = 's3cret-0123456789'
const FORM = 'application/x-www-form-urlencoded'
const seconds = (now: number): string => String(Math.floor(now / 1000))

/** An HMAC of a text, SHA-256 in hex unless said otherwise. */
function mac(
  text: string,
  encoding: Encoding = 'hex',
  algorithm: Algorithm = 'sha256',
  key?: Buffer,
): string {
  return createHmac(algorithm, key ?? SECRET)
    .update(text)
    .digest(encoding)
}

type Row = Pick<NamedSender, 'event'> & Partial<NamedSender> & { readonly json?: unknown }
type Headers = (body: string, now: number, url: string) => readonly Header[]

/** A sender that proves its requests by headers. */
function signs(name: string, { json, ...row }: Row, headers: Headers): NamedSender {
  return {
    name,
    scheme: name,
    secret: SECRET,
    body: JSON.stringify(json),
    id: undefined,
    isTimed: false,
    coversBody: true,
    sign: (body, now, url) => ({ headers: headers(body, now, url) }),
    ...row,
  }
}

/** A sender that sends the secret itself, by what is given: a header, the query, or nothing, since it is in the body. */
function tells(
  name: string,
  { json, ...row }: Row,
  by: { readonly headers?: readonly Header[]; readonly query?: string } = {},
): NamedSender {
  return { ...signs(name, { json, coversBody: false, ...row }, () => []), sign: () => by }
}

const sortedFields = (body: string): string =>
  [...new URLSearchParams(body)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => name + value)
    .join('')

/** Rows whose signature is the digest of the body in one header, after a prefix. */
function digests(
  name: string,
  row: Row,
  header: string,
  write: (body: string) => string,
  others: readonly Header[] = [],
): NamedSender {
  return signs(name, row, (body) => [...others, [header, write(body)]])
}

/** Rows whose header has pairs: a time and a signature of it and the body. */
function pairs(
  name: string,
  row: Row,
  header: string,
  write: (body: string, seconds: string, ms: string) => string,
  others: readonly Header[] = [],
): NamedSender {
  return signs(name, { isTimed: true, ...row }, (body, now) => [
    ...others,
    [header, write(body, seconds(now), String(now))],
  ])
}

const isoOf = (now: number): string => new Date(now).toISOString()
const KEY = Buffer.from('0123456789abcdef0123456789abcdef')

const ADYEN_ITEM = {
  additionalData: { hmacSignature: '' },
  amount: { currency: 'EUR', value: 1130 },
  eventCode: 'AUTHORISATION',
  eventDate: '2026-01-01T10:00:00+01:00',
  merchantAccountCode: 'Shop_ECOM',
  // A merchant may write the colon that separates what is signed.
  merchantReference: 'order:7',
  pspReference: '7914073381342284',
  success: 'true',
}
const adyenItem = (of: object) => ({ NotificationRequestItem: { ...ADYEN_ITEM, ...of } })
const Adyen = load('@adyen/api-library').hmacValidator
const braintree = load('braintree')
const BRAINTREE = new braintree.BraintreeGateway({
  environment: braintree.Environment.Sandbox,
  merchantId: 'merchant',
  publicKey: 'public_1',
  privateKey: SECRET,
})
/** As Contentful's package @contentful/node-apps-toolkit signs (src/requests/sign-request.ts). */
function contentfulSignature(body: string, now: number, url: string, topic: string): string {
  const listed = ['x-contentful-signed-headers', 'x-contentful-timestamp', 'x-contentful-topic']
  const headers = `${listed[0]}:${listed.join(',')};${listed[1]}:${now};${listed[2]}:${topic}`
  return createHmac('sha256', SECRET)
    .update(['POST', new URL(url).pathname, headers, body].join('\n'))
    .digest('hex')
}
const multipart = (name: string, text: string): string =>
  `--boundary-1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n--boundary-1--\r\n`

/** Those that sign in the body, the address or a header where others have something else. */
const ELSEWHERE: readonly NamedSender[] = [
  {
    ...signs(
      'adyen',
      {
        secret: KEY.toString('hex'),
        coversBody: false,
        signed: ['value":11', 'originalReference":"', 'pspReference":"7', 'hmacSignature":"', 'order:7'],
        event: 'AUTHORISATION',
        verify: ({ body }) =>
          JSON.parse(String(body)).notificationItems.every(
            ({ NotificationRequestItem: item }: ReturnType<typeof adyenItem>) =>
              new Adyen().validateHMAC(item, KEY.toString('hex')),
          ),
      },
      () => [],
    ),
    sign: () => {
      const items = [{}, { eventCode: 'CAPTURE', originalReference: '7914073381342284' }].map((of) => {
        const hmacSignature = new Adyen().calculateHmac({ ...ADYEN_ITEM, ...of }, KEY.toString('hex'))
        return adyenItem({ ...of, additionalData: { hmacSignature } })
      })
      return { body: JSON.stringify({ live: 'false', notificationItems: items }) }
    },
  },
  {
    ...signs(
      'braintree',
      {
        secret: `public_1:${SECRET}`,
        type: FORM,
        coversBody: false,
        signed: ['bt_payload=P', 'public_1%7C'],
        event: 'webhook',
        verify: async ({ body }) => {
          const fields = new URLSearchParams(String(body))
          const read = BRAINTREE.webhookNotification.parse(
            fields.get('bt_signature'),
            fields.get('bt_payload'),
          )
          return (await read).kind === 'subscription_went_past_due'
        },
      },
      () => [],
    ),
    sign: () => {
      const made = BRAINTREE.webhookTesting.sampleNotification('subscription_went_past_due', 'id-1')
      return {
        body: new URLSearchParams(made).toString().replace(/^(bt_signature.*)&(bt_payload.*)$/, '$2&$1'),
      }
    },
  },
  signs(
    'contentful',
    {
      json: { sys: { id: '1', type: 'Entry' } },
      event: 'ContentManagement.Entry.publish',
      id: 'c-1',
      isTimed: true,
    },
    (body, now, url) => [
      ['X-Contentful-Topic', 'ContentManagement.Entry.publish'],
      ['X-Contentful-Idempotency-Key', 'c-1'],
      ['X-Contentful-Timestamp', String(now)],
      [
        'X-Contentful-Signed-Headers',
        'x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic',
      ],
      ['X-Contentful-Signature', contentfulSignature(body, now, url, 'ContentManagement.Entry.publish')],
    ],
  ),
  {
    ...signs(
      'dropbox-sign',
      {
        type: 'multipart/form-data; boundary=boundary-1',
        coversBody: false,
        signed: ['event_time":"1', 'event_type":"signature_request_s', 'event_hash":"'],
        event: 'signature_request_sent',
      },
      () => [],
    ),
    // As `EventCallbackHelper.isValid` of the package @dropbox/sign computes it.
    sign: () => {
      const event = {
        event_type: 'signature_request_sent',
        event_time: '1525470811',
        event_hash: mac('1525470811signature_request_sent'),
      }
      return { body: multipart('json', JSON.stringify({ event, account_guid: 'g' })) }
    },
  },
  signs(
    'ghost',
    { json: { post: { current: { id: '1' } } }, event: 'webhook', isTimed: true },
    (body, now) => [['X-Ghost-Signature', `sha256=${mac(`${body}${now}`)}, t=${now}`]],
  ),
  {
    ...signs(
      'mailgun',
      {
        coversBody: false,
        signed: ['token":"a', 'timestamp":"1', ',"signature":"'],
        event: 'delivered',
        id: 'm-1',
      },
      () => [],
    ),
    sign: (_, now) => {
      const [timestamp, token] = [seconds(now), 'a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0']
      const signature = { timestamp, token, signature: mac(timestamp + token) }
      return { body: JSON.stringify({ signature, 'event-data': { event: 'delivered', id: 'm-1' } }) }
    },
  },
  signs(
    'teams',
    {
      secret: KEY.toString('base64'),
      json: { type: 'message', id: '1485983408511', text: '<at>Relay</at> deploy' },
      event: 'message',
      id: '1485983408511',
    },
    (body) => [['Authorization', `HMAC ${mac(body, 'base64', 'sha256', KEY)}`]],
  ),
]

const PAYMENTS: readonly NamedSender[] = [
  digests(
    'aftership',
    { json: { event: 'tracking_update', event_id: 'a-1' }, event: 'tracking_update', id: 'a-1' },
    'aftership-hmac-sha256',
    (body) => mac(body, 'base64'),
  ),
  tells(
    'chargebee',
    {
      secret: 'shop:pa:ss',
      json: { id: 'ev_1', event_type: 'subscription_created' },
      event: 'subscription_created',
      id: 'ev_1',
    },
    { headers: [['Authorization', `Basic ${Buffer.from('shop:pa:ss').toString('base64')}`]] },
  ),
  digests(
    'checkout',
    { json: { id: 'evt_1', type: 'payment_approved' }, event: 'payment_approved', id: 'evt_1' },
    'Cko-Signature',
    (body) => mac(body),
  ),
  digests(
    'coinbase-commerce',
    { json: { id: 1, event: { id: 'c-1', type: 'charge:confirmed' } }, event: 'charge:confirmed', id: 'c-1' },
    'X-CC-Webhook-Signature',
    (body) => mac(body),
  ),
  digests(
    'dwolla',
    { json: { id: 'd-1', topic: 'transfer_completed' }, event: 'transfer_completed', id: 'd-1' },
    'X-Request-Signature-SHA-256',
    (body) => mac(body),
  ),
  tells(
    'flutterwave',
    { json: { event: 'charge.completed', data: {} }, event: 'charge.completed' },
    { headers: [['verif-hash', SECRET]] },
  ),
  digests(
    'gocardless',
    {
      json: {
        events: [{ id: 'EV1', resource_type: 'payments', action: 'confirmed' }],
        meta: { webhook_id: 'WB1' },
      },
      event: 'payments.confirmed',
      id: 'WB1',
    },
    'Webhook-Signature',
    (body) => mac(body),
  ),
  digests(
    'lemon-squeezy',
    { json: { meta: { event_name: 'order_created' }, data: {} }, event: 'order_created' },
    'X-Signature',
    (body) => mac(body),
    [['X-Event-Name', 'order_created']],
  ),
  digests(
    'mollie',
    {
      json: { resource: 'event', id: 'event_1', type: 'payment-link.paid' },
      event: 'payment-link.paid',
      id: 'event_1',
    },
    'X-Mollie-Signature',
    (body) => `sha256=${mac(body)}`,
  ),
  pairs(
    'paddle',
    {
      json: { event_id: 'evt_1', event_type: 'transaction.paid', data: {} },
      event: 'transaction.paid',
      id: 'evt_1',
      verify: async ({ headers, body }, _, now) =>
        at(now, () =>
          new Paddle('x').webhooks.isSignatureValid(
            String(body),
            SECRET,
            lineOf(headers, 'paddle-signature'),
          ),
        ),
    },
    'Paddle-Signature',
    (body, time) => `ts=${time};h1=${mac(`${time}:${body}`)}`,
  ),
  digests(
    'patreon',
    { json: { data: { type: 'member' } }, event: 'members:pledge:create' },
    'X-Patreon-Signature',
    (body) => mac(body, 'hex', 'md5'),
    [['X-Patreon-Event', 'members:pledge:create']],
  ),
  digests(
    'paystack',
    { json: { event: 'charge.success', data: {} }, event: 'charge.success' },
    'x-paystack-signature',
    (body) => mac(body, 'hex', 'sha512'),
  ),
  digests(
    'quickbooks',
    { json: [{ id: 'q-1', type: 'qbo.customer.created.v1' }], event: 'qbo.customer.created.v1' },
    'intuit-signature',
    (body) => mac(body, 'base64'),
  ),
  digests(
    'razorpay',
    {
      json: { event: 'payment.captured', payload: {} },
      event: 'payment.captured',
      id: 'r-1',
      verify: ({ headers, body }) =>
        Razorpay.validateWebhookSignature(String(body), lineOf(headers, 'x-razorpay-signature'), SECRET),
    },
    'X-Razorpay-Signature',
    (body) => mac(body),
    [['x-razorpay-event-id', 'r-1']],
  ),
  pairs(
    'recurly',
    {
      json: { uuid: 'u', object_type: 'subscription', event_type: 'created' },
      event: 'subscription.created',
      id: 'r-1',
    },
    'recurly-signature',
    (body, _, ms) => `${ms},${mac(`${ms}.${body}`)}`,
    [['recurly-notification-id', 'r-1']],
  ),
  signs(
    'revolut',
    { json: { event: 'ORDER_COMPLETED', order_id: 'o-1' }, event: 'ORDER_COMPLETED', isTimed: true },
    (body, now) => [
      ['Revolut-Request-Timestamp', String(now)],
      ['Revolut-Signature', `v1=${mac(`v1.${now}.${body}`)}`],
    ],
  ),
  signs(
    'square',
    { json: { type: 'payment.created', event_id: 's-1' }, event: 'payment.created', id: 's-1' },
    (body, _, url) => [['x-square-hmacsha256-signature', mac(url + body, 'base64')]],
  ),
  digests(
    'squarespace',
    {
      secret: KEY.toString('hex'),
      json: { id: 's-1', topic: 'order.create' },
      event: 'order.create',
      id: 's-1',
    },
    'Squarespace-Signature',
    (body) => mac(body, 'hex', 'sha256', KEY),
  ),
  digests(
    'xero',
    { json: { events: [{ eventCategory: 'INVOICE', eventType: 'UPDATE' }] }, event: 'INVOICE.UPDATE' },
    'x-xero-signature',
    (body) => mac(body, 'base64'),
  ),
]

const DEVELOPMENT: readonly NamedSender[] = [
  digests(
    'alchemy',
    { json: { id: 'whevt_1', type: 'ADDRESS_ACTIVITY' }, event: 'ADDRESS_ACTIVITY', id: 'whevt_1' },
    'X-Alchemy-Signature',
    (body) => mac(body),
  ),
  pairs(
    'buildkite',
    { json: { event: 'build.finished' }, event: 'build.finished' },
    'X-Buildkite-Signature',
    (body, time) => `timestamp=${time},signature=${mac(`${time}.${body}`)}`,
    [['X-Buildkite-Event', 'build.finished']],
  ),
  digests(
    'circleci',
    { json: { id: 'c-1', type: 'workflow-completed' }, event: 'workflow-completed', id: 'c-1' },
    'circleci-signature',
    (body) => `v1=${mac(body)}`,
  ),
  tells(
    'cloudflare',
    { json: { alert_type: 'load_balancing_health_alert' }, event: 'load_balancing_health_alert' },
    { headers: [['cf-webhook-auth', SECRET]] },
  ),
  pairs(
    'cloudflare-stream',
    { json: { uid: 'u', status: { state: 'ready' } }, event: 'ready' },
    'Webhook-Signature',
    (body, time) => `time=${time},sig1=${mac(`${time}.${body}`)}`,
  ),
  tells(
    'deepgram',
    { secret: 'user:pass', json: { metadata: { request_id: 'd-1' } }, event: 'webhook', id: 'd-1' },
    { headers: [['Authorization', `Basic ${Buffer.from('user:pass').toString('base64')}`]] },
  ),
  digests(
    'doppler',
    { json: { type: 'config.secrets.update' }, event: 'config.secrets.update' },
    'X-Doppler-Signature',
    (body) => `sha256=${mac(body)}`,
  ),
  pairs(
    'elevenlabs',
    { json: { type: 'post_call_transcription' }, event: 'post_call_transcription' },
    'ElevenLabs-Signature',
    (body, time) => `t=${time},v0=${mac(`${time}.${body}`)}`,
  ),
  digests(
    'expo',
    { json: { id: 'b-1', status: 'finished' }, event: 'finished' },
    'expo-signature',
    (body) => `sha1=${mac(body, 'hex', 'sha1')}`,
  ),
  digests(
    'grafana',
    { json: { status: 'firing', alerts: [] }, event: 'firing' },
    'X-Grafana-Alerting-Signature',
    (body) => mac(body),
  ),
  digests(
    'heroku',
    {
      json: { action: 'update', resource: 'release', webhook_metadata: { delivery: { id: 'h-1' } } },
      event: 'release.update',
      id: 'h-1',
    },
    'Heroku-Webhook-Hmac-SHA256',
    (body) => mac(body, 'base64'),
  ),
  digests(
    'launchdarkly',
    { json: { _id: 'l-1', kind: 'flag' }, event: 'flag', id: 'l-1' },
    'X-LD-Signature',
    (body) => mac(body),
  ),
  pairs(
    'persona',
    {
      json: { data: { type: 'event', id: 'evt_1', attributes: { name: 'inquiry.approved' } } },
      event: 'inquiry.approved',
      id: 'evt_1',
    },
    'Persona-Signature',
    (body, time) => `t=${time},v1=${mac(`${time}.${body}`)}`,
  ),
  digests(
    'pusher',
    { json: { time_ms: 1, events: [{ name: 'channel_occupied' }] }, event: 'channel_occupied' },
    'X-Pusher-Signature',
    (body) => mac(body),
    [['X-Pusher-Key', 'key']],
  ),
  {
    ...signs(
      'sanity',
      {
        json: { _id: 'd', _type: 'post' },
        event: 'update',
        id: 's-1',
        isTimed: true,
        // The package has no tolerance.
        verify: ({ headers, body }) =>
          isValidSignature(String(body), lineOf(headers, 'sanity-webhook-signature'), SECRET),
      },
      (body, now) => [
        ['sanity-operation', 'update'],
        ['idempotency-key', 's-1'],
        ['sanity-webhook-signature', `t=${now},v1=${mac(`${now}.${body}`, 'base64url')}`],
      ],
    ),
  },
  digests(
    'snyk',
    { json: { project: {} }, event: 'project_snapshot/v0', id: 's-1' },
    'X-Hub-Signature',
    (body) => `sha256=${mac(body)}`,
    [
      ['X-Snyk-Event', 'project_snapshot/v0'],
      ['X-Snyk-Transport-ID', 's-1'],
    ],
  ),
  digests(
    'sonarqube',
    { json: { project: { key: 'demo' }, qualityGate: { status: 'OK' } }, event: 'webhook' },
    'X-Sonar-Webhook-HMAC-SHA256',
    (body) => mac(body),
  ),
  digests(
    'terraform',
    {
      json: { workspace_name: 'demo', notifications: [{ trigger: 'run:completed' }] },
      event: 'run:completed',
    },
    'X-TFE-Notification-Signature',
    (body) => mac(body, 'hex', 'sha512'),
  ),
  digests(
    'vercel',
    { json: { id: 'v-1', type: 'deployment.succeeded' }, event: 'deployment.succeeded', id: 'v-1' },
    'x-vercel-signature',
    (body) => mac(body, 'hex', 'sha1'),
  ),
  pairs(
    'workos',
    {
      json: { id: 'event_1', event: 'user.created' },
      event: 'user.created',
      id: 'event_1',
      verify: ({ headers, body }, _, now) =>
        at(now, () =>
          new WorkOS('sk_test').webhooks.verifyHeader({
            payload: JSON.parse(String(body)),
            sigHeader: lineOf(headers, 'workos-signature'),
            secret: SECRET,
          }),
        ),
    },
    'WorkOS-Signature',
    (body, _, ms) => `t=${ms}, v1=${mac(`${ms}.${body}`)}`,
  ),
]

const MESSAGING: readonly NamedSender[] = [
  signs(
    'customerio',
    {
      json: { event_id: 'c-1', object_type: 'email', metric: 'sent' },
      event: 'email.sent',
      id: 'c-1',
      isTimed: true,
    },
    (body, now) => [
      ['X-CIO-Timestamp', seconds(now)],
      ['X-CIO-Signature', mac(`v0:${seconds(now)}:${body}`)],
    ],
  ),
  digests(
    'discourse',
    { json: { post: { id: 1 } }, event: 'post_created', id: 'd-1' },
    'X-Discourse-Event-Signature',
    (body) => `sha256=${mac(body)}`,
    [
      ['X-Discourse-Event', 'post_created'],
      ['X-Discourse-Event-Id', 'd-1'],
    ],
  ),
  digests(
    'line',
    { json: { destination: 'x', events: [{ type: 'message' }] }, event: 'message' },
    'x-line-signature',
    (body) => mac(body, 'base64'),
  ),
  pairs(
    'mux',
    {
      json: { id: 'm-1', type: 'video.asset.ready' },
      event: 'video.asset.ready',
      id: 'm-1',
      verify: ({ headers, body }, _, now) =>
        at(now, () =>
          new Mux({ webhookSecret: SECRET, tokenId: 'x', tokenSecret: 'x' }).webhooks.verifySignature(
            String(body),
            Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
          ),
        ),
    },
    'Mux-Signature',
    (body, time) => `t=${time},v1=${mac(`${time}.${body}`)}`,
  ),
  tells(
    'postmark',
    { secret: 'user:pass', json: { RecordType: 'Bounce', ID: 1 }, event: 'Bounce', id: 'trace-1' },
    {
      headers: [
        ['Authorization', `Basic ${Buffer.from('user:pass').toString('base64')}`],
        ['X-PM-Webhook-Trace-Id', 'trace-1'],
      ],
    },
  ),
  tells(
    'telegram',
    { json: { update_id: 7, message: {} }, event: 'webhook', id: '7' },
    { headers: [['X-Telegram-Bot-Api-Secret-Token', SECRET]] },
  ),
  pairs(
    'tiktok',
    { json: { event: 'video.publish.completed' }, event: 'video.publish.completed' },
    'TikTok-Signature',
    (body, time) => `t=${time},s=${mac(`${time}.${body}`)}`,
  ),
  signs(
    'twilio',
    {
      body: 'MessageSid=SM1&MessageStatus=delivered&To=%2B1555&Body=a+b',
      type: FORM,
      event: 'delivered',
      id: 't-1',
      verify: ({ headers, body }, url) =>
        twilio.validateRequest(
          SECRET,
          lineOf(headers, 'x-twilio-signature'),
          url,
          Object.fromEntries(new URLSearchParams(String(body))),
        ),
    },
    (body, _, url) => [
      ['I-Twilio-Idempotency-Token', 't-1'],
      [
        'X-Twilio-Signature',
        twilio.getExpectedTwilioSignature(SECRET, url, Object.fromEntries(new URLSearchParams(body))),
      ],
    ],
  ),
  digests(
    'webex',
    { json: { id: 'hook', resource: 'messages', event: 'created' }, event: 'messages.created' },
    'X-Spark-Signature',
    (body) => mac(body, 'hex', 'sha1'),
  ),
]

const BUSINESS: readonly NamedSender[] = [
  digests(
    'airtable',
    {
      secret: KEY.toString('base64'),
      json: { base: { id: 'app1' }, webhook: { id: 'ach1' } },
      event: 'webhook',
    },
    'X-Airtable-Content-MAC',
    (body) => `hmac-sha256=${mac(body, 'hex', 'sha256', KEY)}`,
  ),
  signs(
    'box',
    {
      json: { type: 'webhook_event', id: 'b-1', trigger: 'FILE.UPLOADED' },
      event: 'FILE.UPLOADED',
      id: 'b-1',
      isTimed: true,
    },
    (body, now) => [
      ['BOX-DELIVERY-ID', 'attempt-1'],
      ['BOX-DELIVERY-TIMESTAMP', isoOf(now)],
      ['BOX-SIGNATURE-PRIMARY', mac(body + isoOf(now), 'base64')],
    ],
  ),
  digests(
    'calcom',
    { json: { triggerEvent: 'BOOKING_CREATED' }, event: 'BOOKING_CREATED' },
    'X-Cal-Signature-256',
    (body) => mac(body),
  ),
  pairs(
    'calendly',
    { json: { event: 'invitee.created' }, event: 'invitee.created' },
    'Calendly-Webhook-Signature',
    (body, time) => `t=${time},v1=${mac(`${time}.${body}`)}`,
  ),
  digests(
    'docusign',
    { json: { event: 'envelope-completed' }, event: 'envelope-completed' },
    'X-DocuSign-Signature-1',
    (body) => mac(body, 'base64'),
  ),
  tells('figma', { json: { event_type: 'FILE_UPDATE', passcode: SECRET }, event: 'FILE_UPDATE' }),
  signs(
    'front',
    { json: { type: 'inbound_received' }, event: 'inbound_received', isTimed: true },
    (body, now) => [
      ['X-Front-Request-Timestamp', String(now)],
      ['X-Front-Signature', mac(`${now}:${body}`, 'base64')],
    ],
  ),
  digests(
    'help-scout',
    { json: { id: 1 }, event: 'convo.created' },
    'X-HelpScout-Signature',
    (body) => mac(body, 'base64', 'sha1'),
    [['X-HelpScout-Event', 'convo.created']],
  ),
  signs(
    'hubspot',
    {
      json: [{ eventId: 1, subscriptionType: 'contact.creation' }],
      event: 'contact.creation',
      isTimed: true,
    },
    (body, now, url) => [
      ['X-HubSpot-Request-Timestamp', String(now)],
      ['X-HubSpot-Signature-v3', mac(`POST${url}${body}${now}`, 'base64')],
    ],
  ),
  digests(
    'tally',
    { json: { eventId: 't-1', eventType: 'FORM_RESPONSE' }, event: 'FORM_RESPONSE', id: 't-1' },
    'Tally-Signature',
    (body) => mac(body, 'base64'),
  ),
  digests(
    'typeform',
    { json: { event_id: 't-1', event_type: 'form_response' }, event: 'form_response', id: 't-1' },
    'Typeform-Signature',
    (body) => `sha256=${mac(body, 'base64')}`,
  ),
  signs(
    'webflow',
    { json: { triggerType: 'form_submission' }, event: 'form_submission', isTimed: true },
    (body, now) => [
      ['x-webflow-timestamp', String(now)],
      ['x-webflow-signature', mac(`${now}:${body}`)],
    ],
  ),
  signs(
    'zendesk',
    {
      json: { type: 'zen:event-type:ticket.created' },
      event: 'zen:event-type:ticket.created',
      id: 'z-1',
      isTimed: true,
    },
    (body, now) => [
      ['X-Zendesk-Webhook-Invocation-Id', 'z-1'],
      ['X-Zendesk-Webhook-Signature-Timestamp', isoOf(now)],
      ['X-Zendesk-Webhook-Signature', mac(isoOf(now) + body, 'base64')],
    ],
  ),
]

const lineOf = (headers: readonly Header[], name: string): string =>
  headers.find(([each]) => each.toLowerCase() === name)?.[1] ?? ''

/** For packages that take no clock: they read it before they wait for anything. */
function at<Found>(now: number, act: () => Found): Found {
  vi.useFakeTimers({ toFake: ['Date'], now })
  try {
    return act()
  } finally {
    vi.useRealTimers()
  }
}

export const NAMED_SENDERS: readonly NamedSender[] = [
  ...ELSEWHERE,
  ...PAYMENTS,
  ...DEVELOPMENT,
  ...MESSAGING,
  ...BUSINESS,
  signs(
    'asana',
    {
      json: { events: [{ action: 'changed', resource: { gid: '1', resource_type: 'task' } }] },
      event: 'task.changed',
    },
    (body) => [['X-Hook-Signature', mac(body)]],
  ),
  signs(
    'dropbox',
    { json: { list_folder: { accounts: ['dbid:1'] }, delta: { users: [1] } }, event: 'webhook' },
    (body) => [['X-Dropbox-Signature', mac(body)]],
  ),
  tells(
    'event-grid',
    {
      json: [{ id: 'e-1', eventType: 'Microsoft.Storage.BlobCreated', data: {} }],
      event: 'Microsoft.Storage.BlobCreated',
    },
    { query: `?code=${SECRET}` },
  ),
  signs(
    'intercom',
    {
      json: { type: 'notification_event', topic: 'user.created', id: 'notif_1' },
      event: 'user.created',
      id: 'notif_1',
    },
    (body) => [['X-Hub-Signature', `sha1=${mac(body, 'hex', 'sha1')}`]],
  ),
  tells(
    'mailchimp',
    {
      body: 'type=subscribe&fired_at=2009-03-26+21%3A35%3A57&data%5Bid%5D=8a25ff1d98',
      type: FORM,
      event: 'subscribe',
    },
    { query: `?token=${SECRET}` },
  ),
  signs(
    'mandrill',
    {
      body: `mandrill_events=${encodeURIComponent('[{"event":"send","_id":"1"}]')}`,
      type: FORM,
      event: 'webhook',
    },
    (body, _, url) => [['X-Mandrill-Signature', mac(url + sortedFields(body), 'base64', 'sha1')]],
  ),
  signs(
    'meta',
    {
      json: {
        object: 'whatsapp_business_account',
        entry: [{ id: '1', changes: [{ field: 'messages', value: {} }] }],
      },
      event: 'whatsapp_business_account.messages',
    },
    (body) => [['X-Hub-Signature-256', `sha256=${mac(body)}`]],
  ),
  tells('microsoft-graph', {
    json: {
      value: [{ subscriptionId: '1', clientState: SECRET, changeType: 'created', resource: 'me/messages' }],
    },
    event: 'created',
  }),
  signs(
    'notion',
    { json: { id: 'n-1', type: 'page.created', entity: {} }, event: 'page.created', id: 'n-1' },
    (body) => [['X-Notion-Signature', `sha256=${mac(body)}`]],
  ),
  signs(
    'nylas',
    { json: { specversion: '1.0', type: 'message.created', id: 'm-1' }, event: 'message.created', id: 'm-1' },
    (body) => [['X-Nylas-Signature', mac(body)]],
  ),
  tells(
    'okta',
    {
      json: {
        eventType: 'com.okta.event_hook',
        eventId: 'o-1',
        data: { events: [{ eventType: 'user.session.start' }] },
      },
      event: 'user.session.start',
      id: 'o-1',
    },
    { headers: [['Authorization', SECRET]] },
  ),
  signs(
    'smartsheet',
    {
      json: {
        nonce: 'n-1',
        webhookId: 1,
        scope: 'sheet',
        events: [{ objectType: 'row', eventType: 'created' }],
      },
      event: 'row.created',
      id: 'n-1',
    },
    (body) => [['Smartsheet-Hmac-SHA256', mac(body)]],
  ),
  tells(
    'strava',
    { json: { object_type: 'activity', aspect_type: 'create', object_id: 1 }, event: 'activity.create' },
    { query: `?token=${SECRET}` },
  ),
  signs(
    'trello',
    {
      json: { action: { id: '51f9424bcd6e040f3c002412', type: 'updateCard' } },
      event: 'updateCard',
      id: '51f9424bcd6e040f3c002412',
    },
    (body, _, url) => [['X-Trello-Webhook', mac(body + url, 'base64', 'sha1')]],
  ),
  signs(
    'twitch',
    {
      json: { subscription: { type: 'channel.follow' }, event: {} },
      event: 'channel.follow',
      id: 't-1',
      isTimed: true,
    },
    (body, now) => {
      // As Twitch writes it: nine digits after the second.
      const time = new Date(now).toISOString().replace('Z', '000000Z')
      return [
        ['Twitch-Eventsub-Message-Id', 't-1'],
        ['Twitch-Eventsub-Message-Timestamp', time],
        ['Twitch-Eventsub-Message-Signature', `sha256=${mac(`t-1${time}${body}`)}`],
      ]
    },
  ),
  signs(
    'websub',
    {
      body: '<feed xmlns="http://www.w3.org/2005/Atom"></feed>',
      type: 'application/atom+xml',
      event: 'webhook',
    },
    (body) => [['X-Hub-Signature', `sha512=${mac(body, 'hex', 'sha512')}`]],
  ),
  signs('woocommerce', { json: { id: 1, status: 'processing' }, event: 'order.created' }, (body) => [
    ['X-WC-Webhook-Topic', 'order.created'],
    ['X-WC-Webhook-Delivery-ID', 'w-1'],
    ['X-WC-Webhook-Signature', mac(body, 'base64')],
  ]),
  signs('x', { json: { for_user_id: '1', tweet_create_events: [] }, event: 'webhook' }, (body) => [
    ['x-twitter-webhooks-signature', `sha256=${mac(body, 'base64')}`],
  ]),
  signs(
    'zoom',
    { json: { event: 'meeting.started', event_ts: 1, payload: {} }, event: 'meeting.started', isTimed: true },
    (body, now) => [
      ['x-zm-request-timestamp', seconds(now)],
      ['x-zm-signature', `v0=${mac(`v0:${seconds(now)}:${body}`)}`],
    ],
  ),
]
