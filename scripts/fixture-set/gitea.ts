import { TEMPLATES } from '../../src/providers/gitea/payloads.js'
import { createScene } from '../../src/sandbox/scene.js'
import { newest } from './gitea-newest.js'
import { type Generation, goJson } from './go-json.js'
import { FORM_TYPE, hmac, JSON_TYPE, type Recording } from './recording.js'

const EVENTS = [
  'push',
  'issues.opened',
  'issues.closed',
  'issue_comment.created',
  'pull_request.opened',
  'pull_request.synchronized',
  'pull_request.closed',
  'repository.created',
  'wiki.created',
]
/** Events whose newest layout is recorded too. */
const NEWEST = ['push', 'issue_comment.created', 'pull_request.opened', 'repository.created', 'wiki.created']
/** Everything that Go escapes and JSON.stringify does not. */
const TEXT = 'Webhooks <Yay> & more \u2028\u2029 caf\u00e9 \ud83d\ude80'
const SCENE = createScene(Date.UTC(2024, 4, 15, 15, 20, 18))

/** Gitea's common events, as 1.15 writes them and, for some, as the newest version does. */
export function giteaDeliveries(): Recording[] {
  const form = recording('push', FORM_TYPE)
  const body = Buffer.from(`payload=${queryEscape(form.body.toString())}`)
  return [
    ...EVENTS.map((name) => recording(name, JSON_TYPE)),
    { ...form, name: 'push.form', body },
    ...NEWEST.map((name) => ({ ...recording(name, JSON_TYPE, 'newest'), name: `${name}.newest` })),
  ]
}

/** The signature covers the JSON text, even where the body is a form around it. */
function recording(
  name: string,
  type: string,
  generation: Generation = '1.15',
): Recording & { readonly body: Buffer } {
  const [event = ''] = name.split('.')
  const payload = withText(TEMPLATES[name]?.(SCENE))
  const bytes = Buffer.from(goJson(event, generation === '1.15' ? payload : newest(payload), generation))
  const names = (own: string, value: string) => [
    [`X-Gitea-${own}`, value] as const,
    [`X-Gogs-${own}`, value] as const,
  ]
  const eventType =
    generation === '1.15' ? [] : [['X-GitHub-Event-Type', event] as const, ...names('Event-Type', event)]
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
      ...names('Delivery', deliveryId),
      ...names('Event', event),
      ...eventType,
      ...names('Signature', hmac('sha256', bytes)),
      ['X-Hub-Signature', `sha1=${hmac('sha1', bytes)}`],
      ['X-Hub-Signature-256', `sha256=${hmac('sha256', bytes)}`],
    ],
  }
}

/** The payload with {@link TEXT} wherever a person writes text. */
function withText(payload: unknown): unknown {
  return JSON.parse(
    JSON.stringify(payload, (key, value: unknown) =>
      ['title', 'message', 'body', 'comment', 'location'].includes(key) && typeof value === 'string'
        ? `${TEXT}\n`
        : value,
    ),
  )
}

/** `url.QueryEscape`. */
function queryEscape(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}
