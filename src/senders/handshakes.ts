import type { Accepted, Handshake } from './scheme.js'

const ECHO = { text: '{challenge}' } as const
/**
 * The answer that Dropbox Sign expects, also to an event.
 * @see https://developers.hellosign.com/docs/events/walkthrough/
 */
export const HELLO: Accepted = { type: 'text/plain', text: 'Hello API Event Received' }
/** A request of this method that asks nothing: the address answers, or not. */
const reached = (method: 'GET' | 'HEAD'): Handshake => ({ name: method, method, answer: {} })
/** @see https://developers.facebook.com/docs/graph-api/webhooks/getting-started#verification-requests */
const META: Handshake = {
  name: 'hub.challenge',
  method: 'GET',
  when: { '?hub.mode': 'subscribe' },
  challenge: '?hub.challenge',
  verifyToken: '?hub.verify_token',
  answer: ECHO,
}
/** @see https://developer.nylas.com/docs/developer-guide/v3-webhooks */
const CHALLENGE: Handshake = { name: 'challenge', method: 'GET', challenge: '?challenge', answer: ECHO }

/**
 * Handshakes of senders, by the name of their row in table/, and for `handshake=` of a scheme that a user writes. Those
 * that answer with an HMAC take only challenges that are no body: otherwise anyone could get a delivery signed.
 */
export const HANDSHAKES = {
  /** @see https://developers.asana.com/docs/webhooks-guide */
  asana: [
    {
      name: 'X-Hook-Secret',
      method: 'POST',
      challenge: 'x-hook-secret',
      bringsSecret: true,
      answer: { headers: { 'X-Hook-Secret': '{challenge}' }, text: '' },
    },
  ],
  /** As `verify` of the package braintree answers, and for the challenges that it takes. */
  braintree: [
    {
      name: 'bt_challenge',
      method: 'GET',
      challenge: '?bt_challenge',
      form: /^[a-f\d]{20,32}$/,
      answer: { text: '{signature}' },
    },
  ],
  /** @see https://www.dropbox.com/developers/reference/webhooks */
  dropbox: [CHALLENGE],
  'dropbox-sign': ['$.json', '$'].map((json) => ({
    name: 'callback_test',
    method: 'POST',
    when: { [`${json}.event.event_type`]: 'callback_test' },
    isSigned: true,
    answer: { text: HELLO.text },
  })),
  /**
   * Two handshakes: of interactions, and of webhook events. The type of a PING of one is the type of an event of the other.
   * @see https://docs.discord.com/developers/interactions/overview
   * @see https://docs.discord.com/developers/events/webhook-events
   */
  discord: [
    {
      name: 'PING',
      method: 'POST',
      when: { '$.type': 1 },
      lacks: ['$.event'],
      isSigned: true,
      answer: { json: { type: 1 } },
    },
    { name: 'PING', method: 'POST', when: { '$.type': 0 }, isSigned: true, answer: { status: 204 } },
  ],
  /**
   * Handshakes in Event Grid's own schema, and in that of CloudEvents.
   * @see https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema
   * @see https://learn.microsoft.com/azure/event-grid/end-point-validation-cloud-events-schema
   */
  'event-grid': [
    {
      name: 'SubscriptionValidation',
      method: 'POST',
      when: { '$.0.eventType': 'Microsoft.EventGrid.SubscriptionValidationEvent' },
      challenge: '$.0.data.validationCode',
      answer: { json: { validationResponse: '{challenge}' } },
    },
    {
      name: 'WebHook-Request-Origin',
      method: 'OPTIONS',
      challenge: 'webhook-request-origin',
      answer: {
        headers: { 'WebHook-Allowed-Origin': '{challenge}', 'WebHook-Allowed-Rate': '*' },
        text: '',
      },
    },
  ],
  /**
   * Handshake of an app's webhooks, to be answered within ten seconds.
   * @see https://dev.frontapp.com/docs/application-webhooks
   */
  front: [
    {
      name: 'X-Front-Challenge',
      method: 'POST',
      when: { '$.type': 'sync' },
      challenge: 'x-front-challenge',
      isSigned: true,
      answer: { json: { challenge: '{challenge}' } },
    },
  ],
  /** @see https://developers.intercom.com/docs/references/webhooks/notification-model */
  intercom: [reached('HEAD')],
  /** @see https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/ */
  mailchimp: [reached('GET')],
  /** @see https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/ */
  mandrill: [reached('HEAD')],
  meta: [META],
  /** @see https://learn.microsoft.com/graph/change-notifications-delivery-webhooks#notificationurl-validation */
  'microsoft-graph': [
    { name: 'validationToken', method: 'POST', challenge: '?validationToken', answer: ECHO },
  ],
  /** @see https://developer.monday.com/api-reference/docs/webhooks#url-verification */
  monday: [
    {
      name: 'challenge',
      method: 'POST',
      only: ['challenge'],
      challenge: '$.challenge',
      answer: { json: { challenge: '{challenge}' } },
    },
  ],
  /** @see https://developers.notion.com/reference/webhooks */
  notion: [
    {
      name: 'verification_token',
      method: 'POST',
      only: ['verification_token'],
      challenge: '$.verification_token',
      bringsSecret: true,
      answer: {},
    },
  ],
  nylas: [CHALLENGE],
  /** @see https://developer.okta.com/docs/concepts/event-hooks/#one-time-verification-request */
  okta: [
    {
      name: 'X-Okta-Verification-Challenge',
      method: 'GET',
      challenge: 'x-okta-verification-challenge',
      answer: { json: { verification: '{challenge}' } },
    },
  ],
  /**
   * The test of a certificate is not signed, as Slack's own Bolt accepts it.
   * @see https://docs.slack.dev/reference/events/url_verification
   */
  slack: [
    {
      name: 'url_verification',
      method: 'POST',
      when: { '$.type': 'url_verification' },
      challenge: '$.challenge',
      isSigned: true,
      answer: { json: { challenge: '{challenge}' } },
    },
    {
      name: 'ssl_check',
      method: 'POST',
      isForm: true,
      when: { '$.ssl_check': '1' },
      only: ['ssl_check', 'token'],
      answer: { json: { ok: true } },
    },
  ],
  /** @see https://developers.smartsheet.com/api/smartsheet/guides/webhooks/webhook-verification */
  smartsheet: [
    {
      name: 'Smartsheet-Hook-Challenge',
      method: 'POST',
      challenge: 'smartsheet-hook-challenge',
      answer: {
        headers: { 'Smartsheet-Hook-Response': '{challenge}' },
        json: { smartsheetHookResponse: '{challenge}' },
      },
    },
  ],
  /** @see https://developers.strava.com/docs/webhooks/ */
  strava: [{ ...META, answer: { json: { 'hub.challenge': '{challenge}' } } }],
  /** @see https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/ */
  trello: [reached('HEAD')],
  /** @see https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#responding-to-a-challenge-request */
  twitch: [
    {
      name: 'webhook_callback_verification',
      method: 'POST',
      when: { 'twitch-eventsub-message-type': 'webhook_callback_verification' },
      challenge: '$.challenge',
      isSigned: true,
      answer: ECHO,
    },
  ],
  /**
   * @see https://www.w3.org/TR/websub/#hub-verifies-intent
   * @see https://www.w3.org/TR/websub/#subscription-validation
   */
  websub: [
    {
      name: 'hub.challenge',
      method: 'GET',
      when: { '?hub.mode': 'subscribe' },
      challenge: '?hub.challenge',
      answer: ECHO,
    },
    {
      name: 'hub.challenge',
      method: 'GET',
      when: { '?hub.mode': 'unsubscribe' },
      challenge: '?hub.challenge',
      answer: ECHO,
    },
    // Says that there is no subscription, and asks nothing.
    { name: 'hub.mode=denied', method: 'GET', when: { '?hub.mode': 'denied' }, answer: {} },
  ],
  whatsapp: [META],
  /** `WC_Webhook::deliver_ping` of WooCommerce sends it unsigned. */
  woocommerce: [{ name: 'ping', method: 'POST', isForm: true, only: ['webhook_id'], answer: {} }],
  /** @see https://docs.x.com/x-api/webhooks/introduction */
  x: [
    {
      name: 'crc_token',
      method: 'GET',
      challenge: '?crc_token',
      answer: { json: { response_token: 'sha256={hmac-base64}' } },
    },
  ],
  /** @see https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint */
  zoom: [
    {
      name: 'endpoint.url_validation',
      method: 'POST',
      when: { '$.event': 'endpoint.url_validation' },
      challenge: '$.payload.plainToken',
      isSigned: true,
      answer: { json: { plainToken: '{challenge}', encryptedToken: '{hmac}' } },
    },
  ],
} as const satisfies Readonly<Record<string, readonly Handshake[]>>

const BY_NAME: ReadonlyMap<string, readonly Handshake[]> = new Map(Object.entries(HANDSHAKES))

/** Names that `handshake=` takes. */
export const HANDSHAKE_NAMES: readonly string[] = [...BY_NAME.keys()]

/** Handshakes of the sender with this name: none for most. */
export function handshakesOf(name: string | undefined): readonly Handshake[] {
  return BY_NAME.get(name ?? '') ?? []
}
