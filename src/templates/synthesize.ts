import { randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Fixture } from '../journal/fixture.js'
import { writeJson } from '../replay/edit.js'
import { GITEA_TEMPLATES } from './gitea.js'
import { GITHUB_TEMPLATES } from './github.js'
import type { Templates } from './template.js'

/** The events there are templates for: `event` or `event.action`. */
export function triggers(provider: string): string[] {
  return Object.keys(templatesOf(provider))
}

/**
 * An unsigned delivery of this event as its provider would send it now. An event that has actions means the usual one.
 * @throws RelayError `usage` when there is no template for it.
 */
export function synthesize(provider: string, text: string, now: number): Fixture {
  const templates = templatesOf(provider)
  const found = Object.entries(templates).find(([name]) => name === text || name.startsWith(`${text}.`))
  if (!found)
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}: relay trigger --list has them`,
    )
  const [name, template] = found
  const [event = ''] = name.split('.')
  const delivery = randomUUID()
  const payload = template(now)
  return provider === 'gitea'
    ? fixture(provider, event, delivery, giteaHeaders(event, delivery), writeJson(payload, '  ', true))
    : fixture(provider, event, delivery, githubHeaders(event, delivery), writeJson(payload, '', false))
}

function templatesOf(provider: string): Templates {
  return provider === 'gitea' ? GITEA_TEMPLATES : GITHUB_TEMPLATES
}

function fixture(
  provider: string,
  event: string,
  delivery: string,
  headers: Fixture['headers'],
  body: string,
): Fixture {
  return { relay: 1, provider, event, delivery, headers, body }
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers */
function githubHeaders(event: string, delivery: string): Record<string, string> {
  return {
    Accept: '*/*',
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/relay',
    'X-GitHub-Delivery': delivery,
    'X-GitHub-Event': event,
    'X-GitHub-Hook-ID': '1',
    'X-GitHub-Hook-Installation-Target-ID': '101',
    'X-GitHub-Hook-Installation-Target-Type': 'repository',
  }
}

/** Gitea sends GitHub's and Gogs' names, too. */
function giteaHeaders(event: string, delivery: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': 'Go-http-client/1.1',
    ...Object.fromEntries(
      ['Gitea', 'GitHub', 'Gogs'].flatMap((name) => [
        [`X-${name}-Delivery`, delivery],
        [`X-${name}-Event`, event],
      ]),
    ),
  }
}
