import { BASIC, hmac, jwt, pairs, type SenderRows, signature, time, token } from './row.js'

/** Members of an Adyen notification that its signature covers, in this order. */
const ADYEN_SIGNED = [
  'pspReference',
  'originalReference',
  'merchantAccountCode',
  'merchantReference',
  'amount.value',
  'amount.currency',
  'eventCode',
  'success',
].map((name) => `{$.NotificationRequestItem.${name}}`)

/** Payments, subscriptions and shops. */
export const PAYMENTS: SenderRows = {
  adyen: {
    title: 'Adyen',
    waits: 10_000,
    page: 'https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures',
    secret:
      'the HMAC key of the webhook, in hex (Customer Area, Developers, Webhooks, the webhook, Security)',
    proofs: [
      hmac('$.NotificationRequestItem.additionalData.hmacSignature', {
        each: '$.notificationItems',
        encoding: 'base64',
        key: 'hex',
        signed: ADYEN_SIGNED.join(':'),
        // A text of the merchant, who may write a colon.
        open: '$.NotificationRequestItem.merchantReference',
      }),
      // Other webhooks than those of payments.
      hmac('hmacsignature', { encoding: 'base64', key: 'hex' }),
    ],
    event: ['$.notificationItems.0.NotificationRequestItem.eventCode', '$.type'],
    accepted: { type: 'text/plain', text: '[accepted]' },
  },
  aftership: {
    title: 'AfterShip',
    page: 'https://www.aftership.com/docs/tracking/webhook/webhook-signature',
    secret: 'the webhook secret (AfterShip, Settings, Notifications, Webhooks)',
    proofs: [hmac('aftership-hmac-sha256', { encoding: 'base64' })],
    event: ['$.event'],
    id: ['$.event_id'],
  },
  /** The signature is that of `webhook_notification_gateway.js` in the package braintree. */
  braintree: {
    title: 'Braintree',
    page: 'https://developer.paypal.com/braintree/docs/guides/webhooks/parse/node',
    secret: 'the public and the private key, as public:private (Control Panel, API, Keys)',
    proofs: [
      hmac('$.bt_signature', {
        keyName: '|',
        separator: '&',
        algorithm: 'sha1',
        key: 'sha1',
        signed: '{$.bt_payload}',
      }),
    ],
    event: [],
    content: 'fields',
  },
  chargebee: {
    title: 'Chargebee',
    page: 'https://www.chargebee.com/docs/2.0/webhook_settings.html',
    secret:
      'the user and the password of the webhook, as user:password (Settings, Configure Chargebee, API Keys and Webhooks)',
    proofs: [BASIC],
    event: ['$.event_type'],
    id: ['$.id'],
  },
  checkout: {
    title: 'Checkout.com',
    page: 'https://www.checkout.com/docs/developer-resources/webhooks/manage-webhooks',
    secret: 'the signature key of the workflow (Dashboard, Developers, Webhooks)',
    proofs: [hmac('cko-signature')],
    event: ['$.type'],
    id: ['$.id'],
  },
  'coinbase-commerce': {
    title: 'Coinbase Commerce',
    page: 'https://docs.cdp.coinbase.com/commerce/docs/webhooks-security',
    secret: 'the webhook shared secret (Settings, Notifications, Show shared secrets)',
    proofs: [hmac('x-cc-webhook-signature')],
    event: ['$.event.type'],
    id: ['$.event.id'],
  },
  dwolla: {
    title: 'Dwolla',
    waits: 10_000,
    page: 'https://developers.dwolla.com/guides/webhooks/process-validate',
    secret: 'the secret that you gave when you made the webhook subscription',
    proofs: [hmac('x-request-signature-sha-256')],
    event: ['$.topic'],
    id: ['$.id'],
  },
  flutterwave: {
    title: 'Flutterwave',
    page: 'https://developer.flutterwave.com/docs/webhooks',
    secret: 'the secret hash (Dashboard, Settings, Webhooks)',
    // Version 3 of its API sends the secret itself, version 4 signs.
    proofs: [token('verif-hash'), hmac('flutterwave-signature', { encoding: 'base64' })],
    event: ['$.event', '$.type'],
  },
  gocardless: {
    title: 'GoCardless',
    page: 'https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks/',
    secret: 'the secret of the webhook endpoint (Dashboard, Developers)',
    proofs: [hmac('webhook-signature')],
    event: ['$.events.0.resource_type'],
    action: ['$.events.0.action'],
    id: ['$.meta.webhook_id'],
  },
  'lemon-squeezy': {
    title: 'Lemon Squeezy',
    page: 'https://docs.lemonsqueezy.com/help/webhooks/signing-requests',
    secret: 'the signing secret of the webhook (Settings, Webhooks)',
    proofs: [hmac('x-signature')],
    event: ['$.meta.event_name', 'x-event-name'],
  },
  mollie: {
    title: 'Mollie',
    waits: 15_000,
    page: 'https://docs.mollie.com/reference/webhooks-new#manual-signature-verification',
    secret:
      'the signing secret of the webhook subscription, not an API key (Dashboard, Developers, Webhooks)',
    // The header occurs twice for a day after the secret was changed.
    proofs: [hmac('x-mollie-signature', { prefix: 'sha256=', separator: ',', inLines: true })],
    event: ['$.type'],
    id: ['$.id'],
  },
  paddle: {
    title: 'Paddle',
    waits: 5_000,
    page: 'https://developer.paddle.com/webhooks/signature-verification',
    secret: 'the secret key of the notification destination, pdl_ntfset_… (Developer tools, Notifications)',
    proofs: [
      pairs('paddle-signature', {
        separator: ';',
        prefix: 'h1=',
        signed: '{timestamp}:{body}',
        // Paddle's packages refuse requests older than five seconds.
        time: time('paddle-signature#ts', 's', 5000),
      }),
    ],
    event: ['$.event_type'],
    id: ['$.event_id'],
  },
  patreon: {
    title: 'Patreon',
    page: 'https://docs.patreon.com/#webhooks',
    secret: 'the secret of the webhook (patreon.com/portal, Webhooks)',
    proofs: [hmac('x-patreon-signature', { algorithm: 'md5' })],
    event: ['x-patreon-event'],
  },
  paystack: {
    title: 'Paystack',
    page: 'https://paystack.com/docs/payments/webhooks/#verify-event-origin',
    secret: 'the secret key, sk_… (Dashboard, Settings, API Keys & Webhooks)',
    proofs: [hmac('x-paystack-signature', { algorithm: 'sha512' })],
    event: ['$.event'],
    secretLike: /^sk_/,
  },
  quickbooks: {
    title: 'Intuit QuickBooks',
    waits: 3_000,
    page: 'https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks',
    secret: 'the verifier token (developer.intuit.com, the app, Webhooks)',
    proofs: [hmac('intuit-signature', { encoding: 'base64' })],
    event: ['$.0.type', '$.eventNotifications.0.dataChangeEvent.entities.0.name'],
    action: ['$.eventNotifications.0.dataChangeEvent.entities.0.operation'],
  },
  paypal: {
    title: 'PayPal',
    page: 'https://developer.paypal.com/api/rest/webhooks/rest/',
    secret: 'the id of the webhook (developer.paypal.com, Apps & Credentials, the app, Webhooks)',
    // Its class proves it: the certificate is PayPal's own, and the body is signed by its CRC-32 alone.
    proofs: [
      signature('paypal-transmission-sig', 'rsa-sha256', {
        keyForm: 'pem',
        encoding: 'base64',
        signed: '{id}{timestamp}{fields}',
      }),
    ],
    event: ['$.event_type'],
    id: ['$.id'],
    made: ['paypal-transmission-id', 'paypal-transmission-time', 'paypal-cert-url', 'paypal-auth-algo'],
    agent: 'PayPal/AUHD-214.0-55667318',
  },
  plaid: {
    title: 'Plaid',
    // https://plaid.com/docs/api/webhooks/#webhook-retries
    waits: 10_000,
    page: 'https://plaid.com/docs/api/webhooks/webhook-verification/',
    secret:
      'the key, a JWK, that /webhook_verification_key/get of the API gives for the kid in Plaid-Verification',
    proofs: [
      {
        ...jwt('plaid-verification', {
          algorithm: 'ES256',
          digest: { claim: 'request_body_sha256', encoding: 'hex' },
          maxAge: 300_000,
        }),
        keyForm: 'jwk',
      },
    ],
    event: ['$.webhook_type'],
    action: ['$.webhook_code'],
  },
  razorpay: {
    title: 'Razorpay',
    page: 'https://razorpay.com/docs/webhooks/validate-test/',
    secret: 'the secret of the webhook, not the API key (Dashboard, Account & Settings, Webhooks)',
    proofs: [hmac('x-razorpay-signature')],
    event: ['$.event'],
    id: ['x-razorpay-event-id'],
  },
  recurly: {
    title: 'Recurly',
    page: 'https://docs.recurly.com/recurly-subscriptions/docs/signature-verification',
    secret: 'the secret of the endpoint (Integrations, Webhooks)',
    proofs: [
      hmac('recurly-signature', {
        separator: ',',
        signed: '{timestamp}.{body}',
        time: time('recurly-signature#1', 'ms'),
      }),
    ],
    event: ['$.object_type'],
    action: ['$.event_type'],
    id: ['recurly-notification-id'],
  },
  revolut: {
    title: 'Revolut',
    page: 'https://developer.revolut.com/docs/guides/accept-payments/tutorials/work-with-webhooks/verify-the-payload-signature',
    secret: 'the signing secret of the webhook, wsk_… (from the webhooks API)',
    proofs: [
      hmac('revolut-signature', {
        separator: ',',
        prefix: 'v1=',
        signed: 'v1.{timestamp}.{body}',
        time: time('revolut-request-timestamp', 'ms'),
      }),
    ],
    event: ['$.event'],
  },
  shopify: {
    title: 'Shopify',
    waits: 5_000,
    page: 'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
    secret:
      "the app's client secret (Dev Dashboard, the app's settings), or the one in Settings, Notifications, Webhooks",
    // Webhooks, and Events: https://shopify.dev/docs/apps/build/events/verify-deliveries
    proofs: ['x-shopify-hmac-sha256', 'shopify-hmac-sha256'].map((header) =>
      hmac(header, { encoding: 'base64' }),
    ),
    event: ['x-shopify-topic', 'shopify-topic'],
    action: ['shopify-action'],
    id: ['x-shopify-webhook-id', 'shopify-webhook-id'],
    repo: ['x-shopify-shop-domain', 'shopify-shop-domain'],
    secretHint: 'it is the client secret of the app; for webhooks made in the admin, the one shown there',
  },
  square: {
    title: 'Square',
    waits: 10_000,
    page: 'https://developer.squareup.com/docs/webhooks/step3validate',
    secret: 'the signature key of the subscription (Developer Console, the app, Webhooks, Subscriptions)',
    proofs: [hmac('x-square-hmacsha256-signature', { encoding: 'base64', signed: '{url}{body}' })],
    event: ['$.type'],
    id: ['$.event_id'],
  },
  squarespace: {
    title: 'Squarespace',
    page: 'https://developers.squarespace.com/webhooks/verifying-notifications',
    secret: 'the secret that the API gave when the webhook subscription was made',
    proofs: [hmac('squarespace-signature', { key: 'hex' })],
    event: ['$.topic'],
    id: ['$.id'],
    agent: 'Squarespace/1.0',
  },
  stripe: {
    title: 'Stripe',
    page: 'https://docs.stripe.com/webhooks#verify-manually',
    secret: "the endpoint's signing secret, whsec_… (Dashboard, Developers, Webhooks, the endpoint)",
    proofs: [pairs('stripe-signature')],
    event: ['$.type'],
    id: ['$.id'],
    style: () => 'indented',
    agent: 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
    secretHint:
      'each endpoint has its own signing secret, test and live mode differ, and stripe listen prints another',
  },
  /** As the class `WC_Webhook` in `includes/class-wc-webhook.php` of the plugin sends. */
  woocommerce: {
    title: 'WooCommerce',
    waits: 60_000,
    page: 'https://woocommerce.com/document/webhooks/',
    secret: 'the secret of the webhook (WooCommerce, Settings, Advanced, Webhooks)',
    proofs: [hmac('x-wc-webhook-signature', { encoding: 'base64' })],
    event: ['x-wc-webhook-topic'],
    // Its delivery id is a hash of the webhook and the second, so it is the same for all deliveries of one webhook within that second.
    made: ['x-wc-webhook-delivery-id'],
  },
  xero: {
    title: 'Xero',
    waits: 5_000,
    page: 'https://developer.xero.com/documentation/guides/webhooks/configuring-your-server/',
    secret: 'the webhooks key (developer.xero.com, the app, Webhooks)',
    proofs: [hmac('x-xero-signature', { encoding: 'base64' })],
    event: ['$.events.0.eventCategory'],
    action: ['$.events.0.eventType'],
    // The page asks for an answer without a body.
    accepted: { type: 'text/plain', text: '' },
  },
}
