import { GITEA_PAYLOADS } from './gitea-payloads.js'
import { FORM_TYPE, hmac, JSON_TYPE, type Recording } from './recording.js'

/** Gitea's common events, as Go writes JSON: two spaces of indent, and what HTML or JavaScript could trip over escaped. */
export function giteaDeliveries(): Recording[] {
  const entries = Object.entries(GITEA_PAYLOADS)
  const { push } = GITEA_PAYLOADS
  return [
    ...entries.map(([name, payload]) => recording(name, goJson(payload))),
    {
      ...recording('push.form', goJson(push), FORM_TYPE),
      body: Buffer.from(`payload=${queryEscape(goJson(push))}`),
    },
  ]
}

/** Signed is the JSON text, also where the body is a form around it. */
function recording(name: string, json: string, type = JSON_TYPE): Recording {
  const [event = ''] = name.split('.')
  const bytes = Buffer.from(json)
  const names = (own: string, value: string) => [
    [`X-Gitea-${own}`, value] as const,
    [`X-Gogs-${own}`, value] as const,
  ]
  return {
    provider: 'gitea',
    name,
    event,
    body: bytes,
    headers: (deliveryId) => [
      ['User-Agent', 'Go-http-client/1.1'],
      ['Content-Type', type],
      ['X-GitHub-Delivery', deliveryId],
      ['X-GitHub-Event', event],
      ['X-GitHub-Event-Type', event],
      ...names('Delivery', deliveryId),
      ...names('Event', event),
      ...names('Event-Type', event),
      ...names('Signature', hmac('sha256', bytes)),
      ['X-Hub-Signature', `sha1=${hmac('sha1', bytes)}`],
      ['X-Hub-Signature-256', `sha256=${hmac('sha256', bytes)}`],
    ],
  }
}

/** `json.MarshalIndent(value, "", "  ")`. */
function goJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    /[<>&\u2028\u2029]/g,
    (char) => String.raw`\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** `url.QueryEscape`. */
function queryEscape(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}
