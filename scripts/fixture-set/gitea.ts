import { TEMPLATES } from '../../src/providers/gitea/payloads.js'
import { createScene } from '../../src/sandbox/scene.js'
import { FORM_TYPE, hmac, JSON_TYPE, type Recording } from './recording.js'

const EVENTS = [
  'push',
  'issues.opened',
  'issues.closed',
  'issue_comment.created',
  'pull_request.opened',
  'pull_request.synchronized',
  'pull_request.closed',
]
/** Everything that Go escapes and JSON.stringify does not. */
const TEXT = 'Webhooks <Yay> & more \u2028\u2029 caf\u00e9 \ud83d\ude80'
const SCENE = createScene(Date.UTC(2024, 4, 15, 15, 20, 18))

/** Gitea's common events, as Go writes JSON: two spaces of indent, and what HTML or JavaScript could trip over escaped. */
export function giteaDeliveries(): Recording[] {
  const form = recording('push', FORM_TYPE)
  const body = Buffer.from(`payload=${queryEscape(form.body.toString())}`)
  return [...EVENTS.map((name) => recording(name, JSON_TYPE)), { ...form, name: 'push.form', body }]
}

/** The signature covers the JSON text, even where the body is a form around it. */
function recording(name: string, type: string): Recording & { readonly body: Buffer } {
  const [event = ''] = name.split('.')
  const bytes = Buffer.from(goJson(TEMPLATES[name]?.(SCENE)))
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

/** `json.MarshalIndent(value, "", "  ")`, with {@link TEXT} wherever a person writes text. */
function goJson(payload: unknown): string {
  const withText = (key: string, value: unknown): unknown =>
    ['title', 'message', 'body'].includes(key) ? `${TEXT}\n` : value
  return JSON.stringify(payload, withText, 2).replace(
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
