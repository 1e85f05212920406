import { createHmac } from 'node:crypto'
import { LinearWebhookClient } from '@linear/sdk/webhooks'
import { sign as signHub, verify as verifyHub } from '@octokit/webhooks-methods'
import { verifySlackRequest } from '@slack/bolt'
import { Webhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { type Header, secretVariable, type WebhookRequest } from './delivery.js'
import { type Received, valuesOf } from './receiver.js'

/** How a sender's requests look, and what its own package says of one. Times are milliseconds since 1970-01-01 UTC. */
export interface Sender {
  /** What the settings say after the source's name. */
  readonly scheme: string
  readonly secret: string
  readonly body: string
  /** Default: JSON. */
  readonly type?: string
  /** How relay lists it. */
  readonly event: string
  /** Undefined: it has none, and the digest of its body stands for it. */
  readonly id: string | undefined
  /** Lower-case names of the headers that prove it. */
  readonly proof: string
  /** Milliseconds that the time which it signs may be from now; undefined where it signs none. */
  readonly tolerance?: number
  /** The body that it sends at this time, where that is in it. */
  readonly bodyAt?: (now: number) => string
  /** All headers but Content-Type. */
  readonly sign: (body: string, secret: string, now: number) => Promise<readonly Header[]> | readonly Header[]
  /** The sender's package. @throws Error if it would refuse the request at this time; it may return false, too */
  readonly verify?: (request: WebhookRequest, now: number) => unknown
}

const FORM = 'application/x-www-form-urlencoded'
const FIVE_MINUTES = 300_000
const seconds = (now: number): string => String(Math.floor(now / 1000))

type Algorithm = 'sha1' | 'sha256' | 'sha512'
type Encoding = 'hex' | 'base64'

/** For senders of whose packages none signs. */
function hmac(secret: string, text: string, encoding: Encoding = 'hex', algorithm: Algorithm = 'sha256') {
  return createHmac(algorithm, secret).update(text).digest(encoding)
}

/** For packages that take no clock. */
function at<Found>(now: number, act: () => Found): Found {
  const { now: real } = Date
  Date.now = () => now
  try {
    return act()
  } finally {
    Date.now = real
  }
}

const first = (request: WebhookRequest, name: string): string => valuesOf(request, name)[0] ?? ''

const STANDARD = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const STANDARD_ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'

/** A sender of the Standard Webhooks, by a package that signs and verifies. */
function standard(name: 'webhook' | 'svix', Package: typeof Webhook | typeof SvixWebhook): Sender {
  return {
    scheme: 'standard',
    secret: STANDARD,
    body: '{"type":"user.created","data":{"name":"Ünal <u@example.com>"}}',
    event: 'user.created',
    id: STANDARD_ID,
    proof: `${name}-signature`,
    tolerance: FIVE_MINUTES,
    sign(body, secret, now) {
      // Whole seconds: some versions sign the time as it is given.
      const time = new Date(Math.floor(now / 1000) * 1000)
      return [
        [`${name}-id`, STANDARD_ID],
        [`${name}-timestamp`, seconds(now)],
        [`${name}-signature`, new Package(secret).sign(STANDARD_ID, time, body)],
      ]
    },
    verify({ headers, body }, now) {
      const lines = Object.fromEntries(headers.map(([key, value]) => [key.toLowerCase(), value]))
      return at(now, () => new Package(STANDARD).verify(body.toString(), lines))
    },
  }
}

/** A sender whose header is a prefix and the digest of the body, and that has no package which signs. */
function overBody(
  given: Omit<Sender, 'sign'> & {
    readonly prefix?: string
    readonly encoding?: Encoding
    readonly algorithm?: Algorithm
    readonly headers?: readonly Header[]
  },
): Sender {
  const { prefix = '', encoding, algorithm, headers = [] } = given
  const sign = (body: string, secret: string): Header[] => [
    ...headers,
    [given.proof, prefix + hmac(secret, body, encoding, algorithm)],
  ]
  return { ...given, sign }
}

const SLACK = '8f742231b10e8888abcd99yyyzzz85a5'
const slack: Omit<Sender, 'body' | 'type' | 'event' | 'id'> = {
  scheme: 'slack',
  secret: SLACK,
  proof: 'x-slack-signature',
  tolerance: FIVE_MINUTES,
  sign: (body, secret, now) => [
    ['X-Slack-Request-Timestamp', seconds(now)],
    ['X-Slack-Signature', `v0=${hmac(secret, `v0:${seconds(now)}:${body}`)}`],
  ],
  verify(request, nowMilliseconds) {
    const headers = {
      'x-slack-signature': first(request, 'x-slack-signature'),
      'x-slack-request-timestamp': Number(first(request, 'x-slack-request-timestamp')),
    }
    const body = request.body.toString()
    verifySlackRequest({ signingSecret: SLACK, body, headers, nowMilliseconds })
  },
}

const LINEAR = 'lin_wh_0123456789abcdef'
const STRIPE = 'whsec_test_secret'
const HUB = "It's a Secret to Everybody"

/** Indented as Stripe sends it, with the empty lists and objects of the Ruby that writes it. */
const STRIPE_BODY = `{
  "id": "evt_1PExample",
  "object": "event",
  "created": 1893456000,
  "data": {
    "object": {
      "object": "invoice",
      "customer_name": "Ünal & 中国",
      "metadata": {
      },
      "tax_ids": [

      ]
    }
  },
  "livemode": false,
  "type": "invoice.paid"
}`

const linearBody = (now: number): string =>
  JSON.stringify({
    action: 'create',
    data: { id: '2174add1', title: 'Ünal' },
    type: 'Issue',
    webhookTimestamp: now,
    webhookId: '000042e3',
  })

/** Signed and verified by the package that GitHub's own users have, since the header is the same. */
function hub(
  given: Pick<Sender, 'scheme' | 'body' | 'event' | 'id' | 'proof'> & { headers: readonly Header[] },
): Sender {
  return {
    ...given,
    secret: HUB,
    sign: async (body, secret) => [...given.headers, [given.proof, await signHub(secret, body)]],
    verify: (request) => verifyHub(HUB, request.body.toString(), first(request, given.proof)),
  }
}

/** Every scheme that signs the body, each at least once, by the name of the source that sends it. */
export const SENDERS: Readonly<Record<string, Sender>> = {
  standard: standard('webhook', Webhook),
  svix: standard('svix', SvixWebhook),
  stripe: {
    scheme: 'stripe',
    secret: STRIPE,
    body: STRIPE_BODY,
    type: 'application/json; charset=utf-8',
    event: 'invoice.paid',
    id: 'evt_1PExample',
    proof: 'stripe-signature',
    tolerance: FIVE_MINUTES,
    sign(payload, secret, now) {
      const timestamp = Math.floor(now / 1000)
      return [['Stripe-Signature', Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })]]
    },
    verify({ body, ...request }, now) {
      const header = first({ body, ...request }, 'stripe-signature')
      return Stripe.webhooks.constructEvent(body, header, STRIPE, 300, undefined, now)
    },
  },
  slack: {
    ...slack,
    body: '{"token":"x","team_id":"T1","event":{"type":"app_mention","text":"h\\u00e9 <\\/b>"},"type":"event_callback","event_id":"Ev0PV52K21","event_time":1355517523}',
    event: 'app_mention',
    id: 'Ev0PV52K21',
  },
  'slack-command': {
    ...slack,
    body: 'token=x&team_id=T1&command=%2Fweather&text=94070+%26&trigger_id=13345224609.738474920.8088930838d88f008e0',
    type: FORM,
    event: 'weather',
    id: '13345224609.738474920.8088930838d88f008e0',
  },
  'slack-button': {
    ...slack,
    body: new URLSearchParams({
      payload: '{"type":"block_actions","trigger_id":"12466734323.1395872398","user":{"name":"é"}}',
    }).toString(),
    type: FORM,
    event: 'block_actions',
    id: '12466734323.1395872398',
  },
  'slack-closed': {
    ...slack,
    body: new URLSearchParams({ payload: '{"type":"view_closed","user":{"name":"é"}}' }).toString(),
    type: FORM,
    event: 'view_closed',
    id: undefined,
  },
  gitlab: {
    ...standard('webhook', Webhook),
    scheme: 'gitlab',
    body: '{"object_kind":"merge_request","project":{"path_with_namespace":"octo/demo"},"object_attributes":{"iid":1,"action":"open","title":"<é>"}}',
    event: 'Merge Request Hook.open',
    sign: async (...given) => [
      ['X-Gitlab-Event', 'Merge Request Hook'],
      ['X-Gitlab-Webhook-UUID', 'random'],
      ['Idempotency-Key', STANDARD_ID],
      ...(await standard('webhook', Webhook).sign(...given)),
    ],
  },
  linear: {
    scheme: 'linear',
    secret: LINEAR,
    body: linearBody(0),
    bodyAt: linearBody,
    type: 'application/json; charset=utf-8',
    event: 'Issue.create',
    id: '234d1a4e-b617-4388-90fe-adc3633d6b72',
    proof: 'linear-signature',
    tolerance: 60_000,
    sign: (body, secret) => [
      ['Linear-Delivery', '234d1a4e-b617-4388-90fe-adc3633d6b72'],
      ['Linear-Event', 'Issue'],
      ['Linear-Signature', hmac(secret, body)],
    ],
    verify: (request, now) =>
      at(now, () => new LinearWebhookClient(LINEAR).verify(request.body, first(request, 'linear-signature'))),
  },
  shopify: overBody({
    scheme: 'shopify',
    secret: 'test_secret_key',
    // As in the tests of Shopify's own library, whose signature begins with B23tXN681gZ0.
    body: '{"foo": "bar"}',
    event: 'orders/create',
    id: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    proof: 'x-shopify-hmac-sha256',
    encoding: 'base64',
    headers: [
      ['X-Shopify-Topic', 'orders/create'],
      ['X-Shopify-Shop-Domain', 'demo.myshopify.com'],
      ['X-Shopify-Webhook-Id', 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043'],
    ],
  }),
  bitbucket: hub({
    scheme: 'bitbucket',
    body: '{"repository":{"full_name":"octo/demo"},"pullrequest":{"id":7}}',
    event: 'pullrequest:created',
    id: '8a8f-1',
    proof: 'x-hub-signature',
    headers: [
      ['X-Event-Key', 'pullrequest:created'],
      ['X-Hook-UUID', 'hook-1'],
      ['X-Request-UUID', '8a8f-1'],
    ],
  }),
  jira: hub({
    scheme: 'bitbucket',
    body: '{"timestamp":1,"webhookEvent":"jira:issue_updated"}',
    event: 'jira:issue_updated',
    id: 'jira-1',
    proof: 'x-hub-signature',
    headers: [['X-Atlassian-Webhook-Identifier', 'jira-1']],
  }),
  sentry: overBody({
    scheme: 'sentry',
    secret: 'client-secret',
    body: String.raw`{"action":"created","data":{"issue":{"shortId":"PYTHON-Y","title":"\u00e9"}}}`,
    event: 'issue.created',
    id: '0123456789abcdef0123456789abcdef',
    proof: 'sentry-hook-signature',
    headers: [
      ['Request-ID', '0123456789abcdef0123456789abcdef'],
      ['Sentry-Hook-Resource', 'issue'],
      ['Sentry-Hook-Timestamp', '1'],
    ],
  }),
  pagerduty: overBody({
    scheme: 'pagerduty',
    secret: 'lDQHScfUeXUKaQRNF+8XIiDKZ7XX3itBAYzwU0TARw8lJqRnkKl2iB1anSb0Z+IK',
    body: '{"event":{"id":"5ac64822","event_type":"incident.responder.added","data":{"number":2}}}',
    event: 'incident.responder.added',
    id: '5ac64822',
    proof: 'x-pagerduty-signature',
    prefix: 'v1=',
  }),
  second: hub({
    scheme: 'github',
    body: '{"action":"opened","number":1}',
    event: 'issues.opened',
    id: 'd-1',
    proof: 'x-hub-signature-256',
    headers: [
      ['X-GitHub-Event', 'issues'],
      ['X-GitHub-Delivery', 'd-1'],
    ],
  }),
  plain: overBody({
    scheme: 'hmac header=X-Signature',
    secret: 's3cret',
    body: 'no JSON',
    type: 'text/plain',
    event: 'webhook',
    id: undefined,
    proof: 'x-signature',
  }),
  own: overBody({
    scheme: 'hmac header=X-Sign prefix=sha1= encoding=base64 algorithm=sha1 event=X-Topic id=$.order.id',
    secret: 's3cret',
    body: '{"order":{"id":"o-1"}}',
    event: 'order/paid',
    id: 'o-1',
    proof: 'x-sign',
    prefix: 'sha1=',
    encoding: 'base64',
    algorithm: 'sha1',
    headers: [['X-Topic', 'order/paid']],
  }),
  timed: {
    scheme:
      'hmac header=X-Sign algorithm=sha512 signed={id}:{timestamp}:{body} id=X-Id time=X-Time tolerance=30s event=$.kind',
    secret: 's3cret',
    body: '{"kind":"paid"}',
    event: 'paid',
    id: 'id-1',
    proof: 'x-sign',
    tolerance: 30_000,
    sign: (body, secret, now) => [
      ['X-Id', 'id-1'],
      ['X-Time', seconds(now)],
      ['X-Sign', hmac(secret, `id-1:${seconds(now)}:${body}`, 'hex', 'sha512')],
    ],
  },
}

/** A request of a sender at this time, or one that says otherwise what is given. */
export async function requestOf(
  sender: Sender,
  now: number,
  { secret = sender.secret, body = sender.bodyAt?.(now) ?? sender.body } = {},
): Promise<WebhookRequest> {
  const signed = await sender.sign(body, secret, now)
  return {
    headers: [['Content-Type', sender.type ?? 'application/json'], ...signed],
    body: Buffer.from(body),
  }
}

/** The variables with the secrets of sources. */
export function secretsOf(sources: readonly (readonly [string, Pick<Sender, 'secret'>])[]) {
  return Object.fromEntries(sources.map(([name, { secret }]) => [secretVariable(name), secret]))
}

/** The flags of a relay that takes deliveries of these senders, and forwards those of each to a path of its name. */
export const flagsOf = (
  sources: readonly (readonly [string, Pick<Sender, 'scheme'>])[],
  to?: string,
): string[] =>
  sources.flatMap(([name, { scheme }]) => [
    '--source',
    `${name}=${scheme}`,
    ...(to === undefined ? [] : ['--forward', `${name}/*=${to}/${name}`]),
  ])

/** The header lines of a request but for those of its connection, and relay's own. */
export const sentLines = ({ headers }: Received): readonly Header[] =>
  headers.filter(([name]) => !/^(?:host|connection|content-length|x-relay-attempt)$/i.test(name))
