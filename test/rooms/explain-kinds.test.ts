import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { senderOf } from '../../src/senders/senders.js'
import type { WebhookRequest } from '../../src/senders/request.js'
import { fixtureOf, signed } from '../../src/testing/request.js'

const URL_OF = 'https://hooks.example.com/webhook/x'
const ADYEN = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'
type Change = (request: WebhookRequest) => Partial<WebhookRequest>
const same: Change = () => ({})
const replaced =
  (old: string | RegExp, text: string): Change =>
  ({ body }) => ({ body: Buffer.from(Buffer.from(body).toString().replace(old, text)) })

it.each<[scheme: string, event: string, secret: string, Change, other: string, hint: RegExp, body?: string]>([
  [
    'adyen',
    'AUTHORISATION',
    ADYEN,
    replaced(/"value": ?\d+/, '"value":1'),
    ADYEN,
    /signed with another secret, or a signed member of \$\.notificationItems was changed/,
  ],
  [
    'adyen',
    'AUTHORISATION',
    ADYEN,
    replaced('hmacSignature', 'x'),
    ADYEN,
    /^\$\.notificationItems is no list of items that each have the member \$\.Notif/,
  ],
  [
    'braintree',
    'webhook',
    'pub:priv',
    same,
    'other:priv',
    /^it is signed with another key than relay's: none of its signatures has the name/,
  ],
  ['braintree', 'webhook', 'pub:priv', same, 'priv', /has no name of its key: it is written as name:key$/],
  [
    'braintree',
    'webhook',
    'pub:priv',
    replaced('bt_signature', 'x'),
    'pub:priv',
    /^there is no member \$\.bt_sig/,
  ],
  [
    'twilio',
    'received',
    'tok',
    replaced('1', '2'),
    'tok',
    /^the parameter \?bodySHA256 is the digest of another body/,
    '{"a":1}',
  ],
  [
    'twilio',
    'received',
    'tok',
    () => ({ query: undefined }),
    'tok',
    /^there is no parameter \?bodySHA256, which the sender adds/,
    '{"a":1}',
  ],
])('%s %s, secret %s: what is wrong is said', async (scheme, event, secret, change, other, hint, body) => {
  const fixture = fixtureOf(event, { scheme, ...(body !== undefined && { body }) })
  const right = { ...signed(fixture, { secret }, URL_OF), payloadUrl: URL_OF }
  const explain = (request: WebhookRequest, text: string) =>
    senderOf(scheme).explain(request, { current: new Secret(text) }, Date.now())
  expect(await explain(right, secret)).toMatchObject({ valid: true })
  const wrong = await explain({ ...right, ...change(right) }, other)
  expect(wrong).toMatchObject({ valid: false, hint: expect.stringMatching(hint) })
})
