import { BASIC, hmac, pairs, type SenderRows, signature, time, token } from './row.js'

/** Mailgun sends a webhook again for eight hours; half an hour more. Milliseconds. */
const MAILGUN_RETRIES = 30_600_000

/** Chat, mail, telephony, video and social networks. */
export const MESSAGING: SenderRows = {
  customerio: {
    title: 'Customer.io',
    page: 'https://docs.customer.io/journeys/webhooks/#securely-verify-requests',
    secret:
      'the signing key of the reporting webhook (Data & Integrations, Integrations, Reporting Webhooks)',
    proofs: [
      hmac('x-cio-signature', {
        signed: 'v0:{timestamp}:{body}',
        time: time('x-cio-timestamp'),
      }),
    ],
    event: ['$.object_type'],
    action: ['$.metric'],
    id: ['$.event_id'],
  },
  discord: {
    title: 'Discord: interactions, webhook events',
    page: 'https://docs.discord.com/developers/interactions/overview#setting-up-an-endpoint-validating-security-request-headers',
    secret: "the app's public key (discord.com/developers, the app, General Information)",
    proofs: [
      signature('x-signature-ed25519', 'ed25519', {
        keyForm: 'hex',
        signed: '{timestamp}{body}',
        time: time('x-signature-timestamp'),
      }),
    ],
    // Names of commands and buttons are their authors' own text. An interaction has the number of its kind.
    event: ['$.event.type', '$.type'],
    id: ['$.id'],
    // Anyone with the token of an interaction can answer it for 15 minutes.
    secretMembers: ['$.token'],
    agent: 'Discord-Interactions/1.0 (+https://discord.com)',
  },
  discourse: {
    title: 'Discourse',
    page: 'https://meta.discourse.org/t/configure-webhooks-that-trigger-on-discourse-events-to-integrate-with-external-services/49045',
    secret: 'the secret of the webhook (Admin, API, Webhooks)',
    proofs: [hmac('x-discourse-event-signature', { prefix: 'sha256=' })],
    // A test has a type alone.
    event: ['x-discourse-event', 'x-discourse-event-type'],
    id: ['x-discourse-event-id'],
  },
  line: {
    title: 'LINE',
    page: 'https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/',
    secret: 'the channel secret (LINE Developers Console, the channel, Basic settings)',
    proofs: [hmac('x-line-signature', { encoding: 'base64' })],
    event: ['$.events.0.type'],
  },
  mailchimp: {
    title: 'Mailchimp',
    waits: 10_000,
    page: 'https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/',
    secret: 'a text of your own, which you add to the address there as ?token=…',
    proofs: [token('?token')],
    event: ['$.type'],
    content: 'fields',
  },
  mailgun: {
    title: 'Mailgun',
    page: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    secret: 'the HTTP webhook signing key (Control Panel, Sending, Webhooks)',
    proofs: [
      hmac('$.signature.signature', {
        signed: '{timestamp}{$.signature.token}',
        time: time('$.signature.timestamp', 's', MAILGUN_RETRIES),
      }),
      // Forms: messages of a route, and webhooks of before 2018.
      hmac('$.signature', {
        signed: '{timestamp}{$.token}',
        time: time('$.timestamp', 's', MAILGUN_RETRIES),
      }),
    ],
    event: ['$.event-data.event', '$.event'],
    id: ['$.event-data.id'],
    content: 'fields',
  },
  mandrill: {
    title: 'Mandrill (Mailchimp Transactional)',
    page: 'https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/',
    secret: 'the key of the webhook (Settings, Webhooks)',
    proofs: [
      hmac('x-mandrill-signature', { algorithm: 'sha1', encoding: 'base64', signed: '{url}{fields}' }),
    ],
    event: [],
    content: 'fields',
  },
  meta: {
    title: 'Meta: WhatsApp, Facebook, Messenger, Instagram',
    page: 'https://developers.facebook.com/docs/graph-api/webhooks/getting-started#validate-payloads',
    secret: 'the app secret (developers.facebook.com, the app, App settings, Basic)',
    proofs: [hmac('x-hub-signature-256', { prefix: 'sha256=' })],
    event: ['$.object'],
    action: ['$.entry.0.changes.0.field'],
  },
  mux: {
    title: 'Mux',
    page: 'https://www.mux.com/docs/core/verify-webhook-signatures',
    secret: 'the signing secret of the webhook (Dashboard, Settings, Webhooks)',
    proofs: [pairs('mux-signature')],
    event: ['$.type'],
    id: ['$.id'],
  },
  nylas: {
    title: 'Nylas',
    waits: 10_000,
    page: 'https://developer.nylas.com/docs/v3/notifications/#respond-to-webhook-challenge',
    secret: 'the webhook secret that the API gave when the webhook was made (Dashboard, Notifications)',
    proofs: [hmac('x-nylas-signature')],
    event: ['$.type'],
    id: ['$.id'],
  },
  postmark: {
    title: 'Postmark',
    page: 'https://postmarkapp.com/developer/webhooks/webhooks-overview#protecting-your-webhook',
    secret:
      'the user and the password that you set for the webhook, as user:password (the server, the stream, Webhooks)',
    proofs: [BASIC],
    event: ['$.RecordType'],
    // This id stays the same when it sends an event again.
    id: ['x-pm-webhook-trace-id'],
  },
  sendgrid: {
    title: 'SendGrid',
    page: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
    secret: 'the verification key of the signed event webhook (Settings, Mail Settings, Event Webhooks)',
    // A request has several events, each with an id. A repeated request may contain others, too.
    proofs: [
      signature('x-twilio-email-event-webhook-signature', 'ecdsa-p256', {
        keyForm: 'spki',
        encoding: 'base64',
        signed: '{timestamp}{body}',
        time: time('x-twilio-email-event-webhook-timestamp'),
      }),
    ],
    event: ['$.0.event'],
    agent: 'SendGrid Event API',
  },
  slack: {
    title: 'Slack',
    waits: 3_000,
    page: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
    secret: "the app's signing secret (api.slack.com/apps, the app, Basic Information, App Credentials)",
    proofs: [
      hmac('x-slack-signature', {
        prefix: 'v0=',
        signed: 'v0:{timestamp}:{body}',
        time: time('x-slack-request-timestamp'),
      }),
    ],
    event: ['$.event.type', '$.type', '$.command'],
    id: ['$.event_id', '$.trigger_id'],
    content: 'fields',
    // The verification token, with which requests were proved before they were signed.
    secretMembers: ['$.token'],
    agent: 'Slackbot 1.0 (+https://api.slack.com/robots)',
    secretHint: 'it is the signing secret of the app, not a token or the verification token',
  },
  teams: {
    title: 'Microsoft Teams outgoing webhooks',
    waits: 5_000,
    page: 'https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook',
    secret: 'the security token that Teams showed once when the outgoing webhook was made',
    proofs: [hmac('authorization', { prefix: 'HMAC ', encoding: 'base64', key: 'base64' })],
    event: ['$.type'],
    id: ['$.id'],
  },
  telegram: {
    title: 'Telegram',
    page: 'https://core.telegram.org/bots/api#setwebhook',
    secret: 'the secret_token that you gave to setWebhook',
    proofs: [token('x-telegram-bot-api-secret-token')],
    event: [],
    id: ['$.update_id'],
  },
  telnyx: {
    title: 'Telnyx',
    page: 'https://developers.telnyx.com/docs/development/sdk/node/webhooks',
    secret: "the account's public key (Mission Control, Keys & Credentials, Public Key)",
    proofs: [
      signature('telnyx-signature-ed25519', 'ed25519', {
        keyForm: 'base64',
        encoding: 'base64',
        signed: '{timestamp}|{body}',
        time: time('telnyx-timestamp'),
      }),
    ],
    event: ['$.data.event_type'],
    id: ['$.data.id'],
  },
  tiktok: {
    title: 'TikTok',
    page: 'https://developers.tiktok.com/doc/webhooks-verification',
    secret: 'the client secret of the app (developers.tiktok.com, Manage apps)',
    proofs: [pairs('tiktok-signature', { prefix: 's=' })],
    event: ['$.event'],
  },
  twilio: {
    title: 'Twilio',
    waits: 15_000,
    page: 'https://www.twilio.com/docs/usage/security#validating-requests',
    secret: 'the auth token of the account (Console, Account Dashboard)',
    // A body that is no form is signed by its digest in the address. Shared keys sign with SHA-256.
    proofs: [{ signed: '{url}', digest: '?bodySHA256' }, { signed: '{url}{fields}' }].flatMap((how) =>
      (['sha1', 'sha256'] as const).map((algorithm) =>
        hmac('x-twilio-signature', { algorithm, encoding: 'base64', ...how }),
      ),
    ),
    event: ['$.MessageStatus', '$.SmsStatus', '$.CallStatus', '$.0.type'],
    id: ['i-twilio-idempotency-token'],
    content: 'fields',
    // Anything else is no TwiML, which Twilio reports as an error.
    accepted: { type: 'text/xml', text: '<Response/>' },
  },
  twitch: {
    title: 'Twitch EventSub',
    page: 'https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#verifying-the-event-message',
    secret: 'the secret that you gave when you made the subscription',
    proofs: [
      hmac('twitch-eventsub-message-signature', {
        prefix: 'sha256=',
        signed: '{id}{timestamp}{body}',
        id: 'twitch-eventsub-message-id',
        // The page tells receivers to drop messages older than ten minutes.
        time: time('twitch-eventsub-message-timestamp', 'rfc3339', 600_000),
      }),
    ],
    event: ['$.subscription.type'],
    // Of a subscription that has ended: https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#revoking-your-subscription
    notice: { name: 'revocation', lacks: ['$.event', '$.events'] },
    id: ['twitch-eventsub-message-id'],
  },
  webex: {
    title: 'Webex',
    page: 'https://developer.webex.com/docs/api/guides/webhooks',
    secret: 'the secret that you gave when you made the webhook',
    proofs: [hmac('x-spark-signature', { algorithm: 'sha1' })],
    event: ['$.resource'],
    action: ['$.event'],
  },
  websub: {
    title: 'WebSub',
    page: 'https://www.w3.org/TR/websub/#signature-validation',
    secret: 'the hub.secret that you gave when you subscribed',
    proofs: (['sha256', 'sha1', 'sha384', 'sha512'] as const).map((algorithm) =>
      hmac('x-hub-signature', { algorithm, prefix: `${algorithm}=` }),
    ),
    event: [],
    content: 'any',
  },
  x: {
    title: 'X (Twitter)',
    waits: 10_000,
    page: 'https://docs.x.com/x-api/webhooks/introduction',
    secret: "the app's consumer secret (developer portal, the app, Keys and tokens)",
    proofs: [hmac('x-twitter-webhooks-signature', { prefix: 'sha256=', encoding: 'base64' })],
    event: [],
  },
  zoom: {
    title: 'Zoom',
    waits: 3_000,
    page: 'https://developers.zoom.us/docs/api/webhooks/#verify-webhook-events',
    secret: "the app's secret token (marketplace.zoom.us, the app, Access)",
    proofs: [
      hmac('x-zm-signature', {
        prefix: 'v0=',
        signed: 'v0:{timestamp}:{body}',
        time: time('x-zm-request-timestamp'),
      }),
    ],
    event: ['$.event'],
  },
}
