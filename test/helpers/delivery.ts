import { randomUUID } from 'node:crypto'
import { Secret } from '../../src/base/secret.js'
import type { Header } from '../../src/http/headers.js'
import { openHost } from '../../src/codehost/hosts.js'
import { TEST_SECRET as SECRET } from '../../src/testing/request.js'
import type { WebhookRequest } from '../../src/webhook/intake.js'
import { sign } from './sign.js'

export { SECRET }
export const SECRETS = { current: new Secret(SECRET) }

export const GITHUB = openHost({ name: 'github', url: 'https://github.com' })
export const GITEA = openHost({ name: 'gitea', url: 'https://gitea.example' })

export interface DeliveryOptions {
  readonly body?: string | Uint8Array
  /** What was signed, where it is not the body. */
  readonly signed?: string
  readonly secret?: string
  readonly event?: string
  readonly id?: string
  readonly hook?: string
  readonly type?: string
  /** Replace or, given `undefined`, leave out headers; several values make several lines. */
  readonly set?: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** A delivery as GitHub sends it, signed with {@link SECRET}. */
export function githubDelivery(options: DeliveryOptions = {}): WebhookRequest {
  return delivery(options, {
    'X-GitHub-Hook-ID': options.hook ?? '42',
    'X-GitHub-Event': options.event ?? 'push',
    'X-GitHub-Delivery': options.id ?? randomUUID(),
  })
}

/** A delivery as Gitea sends it: GitHub's headers too, with Gitea's event names. */
export function giteaDelivery(options: DeliveryOptions = {}): WebhookRequest {
  const id = options.id ?? randomUUID()
  return delivery(options, {
    'X-GitHub-Delivery': id,
    'X-GitHub-Event': 'push',
    'X-Gitea-Delivery': id,
    'X-Gitea-Event': options.event ?? 'push',
  })
}

function delivery(options: DeliveryOptions, own: Record<string, string>): WebhookRequest {
  const body = Buffer.from(options.body ?? '{"zen":"Design for failure."}')
  const headers = {
    'Content-Type': options.type ?? 'application/json',
    ...own,
    'X-Hub-Signature-256': sign(options.secret ?? SECRET, Buffer.from(options.signed ?? body)),
    ...options.set,
  }
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().map((value): Header => [name, value]),
  )
  return { headers: lines, body }
}
