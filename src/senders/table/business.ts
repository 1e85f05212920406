import { HELLO } from '../handshakes.js'
import { hmac, jwt, pairs, type SenderRows, time, token } from './row.js'

/** Tasks, documents, files, forms, calendars and customers. */
export const BUSINESS: SenderRows = {
  airtable: {
    title: 'Airtable',
    page: 'https://airtable.com/developers/web/api/webhooks-overview',
    secret: 'the macSecretBase64 that the API gave when the webhook was made',
    proofs: [hmac('x-airtable-content-mac', { prefix: 'hmac-sha256=', key: 'base64' })],
    event: [],
    // The page asks for an answer without a body.
    accepted: { type: 'text/plain', text: '' },
  },
  asana: {
    title: 'Asana',
    waits: 10_000,
    page: 'https://developers.asana.com/docs/webhooks-guide',
    secret: 'the X-Hook-Secret that Asana sent when the webhook was made',
    proofs: [hmac('x-hook-signature')],
    event: ['$.events.0.resource.resource_type'],
    action: ['$.events.0.action'],
  },
  box: {
    title: 'Box',
    waits: 30_000,
    page: 'https://developer.box.com/guides/webhooks/v2/signatures-v2/',
    secret: 'the primary signature key (Developer Console, the app, Webhooks, Manage signature keys)',
    proofs: [
      hmac('box-signature-primary', {
        encoding: 'base64',
        signed: '{body}{timestamp}',
        // Box's packages refuse requests older than ten minutes.
        time: time('box-delivery-timestamp', 'rfc3339', 600_000),
      }),
    ],
    event: ['$.trigger'],
    // The id in the header changes each time that Box sends the event: developer.box.com/guides/webhooks/v2
    id: ['$.id'],
    made: ['box-delivery-id'],
  },
  calcom: {
    title: 'Cal.com',
    page: 'https://cal.com/docs/developing/guides/automation/webhooks',
    secret: 'the secret of the webhook (Settings, Developer, Webhooks)',
    proofs: [hmac('x-cal-signature-256')],
    event: ['$.triggerEvent'],
  },
  calendly: {
    title: 'Calendly',
    // https://developer.calendly.com/api-docs/overview/webhooks/webhook-timeouts
    waits: 15_000,
    page: 'https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures',
    secret: 'the signing key that you gave when you made the webhook subscription',
    proofs: [
      pairs('calendly-webhook-signature', {
        // As in the code on the page.
        time: time('calendly-webhook-signature#t', 's', 180_000),
      }),
    ],
    event: ['$.event'],
  },
  contentful: {
    title: 'Contentful',
    // https://www.contentful.com/developers/changelog/reduced-webhook-timeout/
    waits: 30_000,
    page: 'https://www.contentful.com/developers/docs/extensibility/app-framework/request-verification/',
    secret: 'the signing secret of the space, shown once (Settings, Webhooks, Settings)',
    proofs: [
      hmac('x-contentful-signature', {
        signed: String.raw`{method}\n{path}\n{headers}\n{body}`,
        escapesPath: true,
        headerList: 'x-contentful-signed-headers',
        // Contentful's package refuses requests older than 30 seconds.
        time: time('x-contentful-timestamp', 'ms', 30_000),
      }),
    ],
    event: ['x-contentful-topic'],
    id: ['x-contentful-idempotency-key'],
  },
  docusign: {
    title: 'DocuSign Connect',
    page: 'https://developers.docusign.com/platform/webhooks/connect/hmac/',
    secret: 'the first HMAC key of Connect (Settings, Connect, Connect keys)',
    proofs: [hmac('x-docusign-signature-1', { encoding: 'base64' })],
    event: ['$.event'],
    content: 'any',
  },
  dropbox: {
    title: 'Dropbox',
    waits: 10_000,
    page: 'https://www.dropbox.com/developers/reference/webhooks',
    secret: 'the app secret (dropbox.com/developers, App Console, the app)',
    proofs: [hmac('x-dropbox-signature')],
    event: [],
  },
  'dropbox-sign': {
    title: 'Dropbox Sign',
    page: 'https://developers.hellosign.com/docs/events/walkthrough/',
    secret: 'the API key of the account (app.hellosign.com, API, API keys)',
    proofs: ['$.json', '$'].map((json) =>
      hmac(`${json}.event.event_hash`, {
        signed: `{timestamp}{${json}.event.event_type}`,
        // It sends an event again for days, with the time of the event.
        time: time(`${json}.event.event_time`, 's', Infinity),
      }),
    ),
    event: ['$.json.event.event_type', '$.event.event_type'],
    content: 'fields',
    accepted: HELLO,
  },
  figma: {
    title: 'Figma',
    page: 'https://developers.figma.com/docs/rest-api/webhooks-security/',
    secret: 'the passcode that you gave when you made the webhook',
    proofs: [token('$.passcode')],
    event: ['$.event_type'],
  },
  front: {
    title: 'Front',
    page: 'https://dev.frontapp.com/docs/application-webhooks',
    secret:
      'the signing key of the app (Settings, Developers, the app); for webhooks of a rule, the API secret there',
    proofs: [
      hmac('x-front-signature', {
        encoding: 'base64',
        signed: '{timestamp}:{body}',
        time: time('x-front-request-timestamp', 'ms'),
      }),
      // Webhooks of a rule: https://dev.frontapp.com/docs/rule-webhooks
      hmac('x-front-signature', { algorithm: 'sha1', encoding: 'base64' }),
    ],
    event: ['$.type'],
  },
  ghost: {
    title: 'Ghost',
    // `services/webhooks/webhook-trigger.js` of Ghost.
    waits: 2_000,
    page: 'https://ghost.org/docs/webhooks/',
    secret: 'the secret of the webhook (Settings, Integrations, the custom integration)',
    proofs: [
      hmac('x-ghost-signature', {
        prefix: 'sha256=',
        separator: ',',
        signed: '{body}{timestamp}',
        time: time('x-ghost-signature#t', 'ms'),
        layout: '{signature}, t={timestamp}',
      }),
    ],
    event: [],
  },
  'help-scout': {
    title: 'Help Scout',
    page: 'https://developer.helpscout.com/webhooks/',
    secret: 'the secret key of the webhook (Manage, Apps, Webhooks)',
    proofs: [hmac('x-helpscout-signature', { algorithm: 'sha1', encoding: 'base64' })],
    event: ['x-helpscout-event'],
  },
  hubspot: {
    title: 'HubSpot',
    waits: 5_000,
    page: 'https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests',
    secret: 'the client secret of the app (Development, the app, Auth)',
    proofs: [
      hmac('x-hubspot-signature-v3', {
        encoding: 'base64',
        signed: '{method}{url}{body}{timestamp}',
        time: time('x-hubspot-request-timestamp', 'ms'),
      }),
    ],
    event: ['$.0.subscriptionType'],
  },
  intercom: {
    title: 'Intercom',
    waits: 5_000,
    page: 'https://developers.intercom.com/docs/webhooks/setting-up-webhooks',
    secret: "the app's client secret (Developer Hub, the app, Basic information)",
    proofs: [hmac('x-hub-signature', { algorithm: 'sha1', prefix: 'sha1=' })],
    event: ['$.topic'],
    id: ['$.id'],
  },
  'microsoft-graph': {
    title: 'Microsoft Graph',
    waits: 10_000,
    page: 'https://learn.microsoft.com/graph/change-notifications-delivery-webhooks',
    secret: 'the clientState that you gave when you made the subscription',
    proofs: [token('$.value.0.clientState')],
    event: ['$.value.0.lifecycleEvent', '$.value.0.changeType'],
  },
  notion: {
    title: 'Notion',
    page: 'https://developers.notion.com/reference/webhooks',
    secret: 'the verification_token that Notion sent to the address',
    proofs: [hmac('x-notion-signature', { prefix: 'sha256=' })],
    event: ['$.type'],
    id: ['$.id'],
  },
  smartsheet: {
    title: 'Smartsheet',
    page: 'https://developers.smartsheet.com/api/smartsheet/guides/webhooks/webhook-callbacks',
    secret: 'the sharedSecret that the API gave when the webhook was made',
    proofs: [hmac('smartsheet-hmac-sha256')],
    event: ['$.events.0.objectType'],
    action: ['$.events.0.eventType'],
    id: ['$.nonce'],
  },
  strava: {
    title: 'Strava',
    waits: 2_000,
    page: 'https://developers.strava.com/docs/webhooks/',
    secret: 'a text of your own, which you add to the callback_url as ?token=…',
    proofs: [token('?token')],
    event: ['$.object_type'],
    action: ['$.aspect_type'],
  },
  tally: {
    title: 'Tally',
    page: 'https://tally.so/help/webhooks',
    secret: 'the signing secret of the webhook (the form, Integrations, Webhooks)',
    proofs: [hmac('tally-signature', { encoding: 'base64' })],
    event: ['$.eventType'],
    id: ['$.eventId'],
  },
  trello: {
    title: 'Trello',
    page: 'https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/#webhook-signatures',
    secret: "the Power-Up's API secret (trello.com/power-ups/admin, API key)",
    proofs: [hmac('x-trello-webhook', { algorithm: 'sha1', encoding: 'base64', signed: '{body}{url}' })],
    event: ['$.action.type'],
    id: ['$.action.id'],
  },
  typeform: {
    title: 'Typeform',
    // https://www.typeform.com/developers/webhooks/
    waits: 30_000,
    page: 'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
    secret: 'the secret of the webhook (the form, Connect, Webhooks)',
    proofs: [hmac('typeform-signature', { prefix: 'sha256=', encoding: 'base64' })],
    event: ['$.event_type'],
    id: ['$.event_id'],
  },
  webflow: {
    title: 'Webflow',
    page: 'https://developers.webflow.com/data/docs/working-with-webhooks',
    secret:
      'the secret key that the API gave when the webhook was made, or the client secret of the app; webhooks of the dashboard have no signature',
    proofs: [
      hmac('x-webflow-signature', {
        signed: '{timestamp}:{body}',
        time: time('x-webflow-timestamp', 'ms'),
      }),
    ],
    event: ['$.triggerType'],
  },
  wix: {
    title: 'Wix',
    waits: 1_250,
    page: 'https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks',
    secret: "the app's public key (the app's dashboard, Webhooks, Get Public Key)",
    proofs: [{ ...jwt('$', { algorithm: 'RS256', isBody: true }), keyForm: 'pem' }],
    // The event is JSON in a text, in JSON in a text: dev.wix.com/docs/rest/articles/get-started/webhook-structure.
    event: ['$.data.eventType'],
    id: ['$.data.data.id'],
    content: 'any',
  },
  zendesk: {
    title: 'Zendesk',
    waits: 12_000,
    page: 'https://developer.zendesk.com/documentation/webhooks/verifying/',
    secret: 'the signing secret of the webhook (Admin Center, Apps and integrations, Webhooks)',
    proofs: [
      hmac('x-zendesk-webhook-signature', {
        encoding: 'base64',
        signed: '{timestamp}{body}',
        time: time('x-zendesk-webhook-signature-timestamp', 'rfc3339'),
      }),
    ],
    event: ['$.type'],
    id: ['x-zendesk-webhook-invocation-id'],
    content: 'any',
  },
}
