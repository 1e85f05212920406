import { randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Fixture } from '../fixtures/fixture.js'
import { format } from '../json/format.js'
import { codeHostOf } from '../providers/code-hosts.js'
import { createScene } from './scene.js'

/** Events that have a template: `event` or `event.action`. */
export function triggers(provider: string): string[] {
  return Object.keys(codeHostOf(provider).templates)
}

/**
 * Creates an unsigned delivery about the sandbox's repository, as the provider would send it now. An event without its
 * action means the usual action.
 * @throws RelayError `usage` when the event has no template.
 */
export function synthesize(provider: string, text: string, now: number): Fixture {
  const { templates, webhook } = codeHostOf(provider)
  const found = Object.entries(templates).find(([name]) => name === text || name.startsWith(`${text}.`))
  if (!found)
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}: relay trigger --list has them`,
    )
  const [name, template] = found
  const [event = ''] = name.split('.')
  const delivery = randomUUID()
  const headers = webhook.headers(event, delivery)
  const body = format(JSON.stringify(template(createScene(now))), webhook.jsonStyle(event))
  return { relay: 1, provider, event, delivery, headers, body }
}
