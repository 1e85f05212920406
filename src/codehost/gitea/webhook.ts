import { HUB_PROOF, hubSignature } from '../hub-signature.js'
import type { WebhookScheme } from '../host.js'
import { EVENTS } from './events.js'

/** RepositoryPayload and WikiPayload in Gitea's modules/structs/hook.go, from v1.15 to main. All others are indented by two. */
const ONE_SPACE_EVENTS: ReadonlySet<string> = new Set(['repository', 'wiki'])

/** Gitea sends GitHub's and Gogs' header names besides its own. */
export const WEBHOOK: WebhookScheme = {
  ...HUB_PROOF,
  eventHeader: 'x-gitea-event',
  idHeaders: ['x-gitea-delivery'],
  formSignature: 'payload',
  events: EVENTS,
  summary: {
    action: ['action'],
    // `repository` is the fork, and at GitHub what was forked: services/webhook/notifier.go, ForkRepository.
    repo: ['forkee.full_name', 'repository.full_name'],
    number: ['number', 'issue.number', 'pull_request.number'],
  },
  style: (event) => (ONE_SPACE_EVENTS.has(event) ? 'one-space-go' : 'indented-go'),
  headers: (event, id, signed, secret) => {
    const signature = secret && hubSignature(secret, signed)
    return {
      'Content-Type': 'application/json',
      'User-Agent': 'Go-http-client/1.1',
      ...Object.fromEntries(
        ['Gitea', 'GitHub', 'Gogs'].flatMap((name) => [
          [`X-${name}-Delivery`, id],
          [`X-${name}-Event`, event],
        ]),
      ),
      ...(signature !== undefined && {
        'X-Hub-Signature-256': signature,
        'X-Gitea-Signature': signature.replace('sha256=', ''),
      }),
    }
  },
}
