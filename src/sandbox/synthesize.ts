import { randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { type Fixture, fixtureBody } from '../fixtures/fixture.js'
import { packagedEvents, packagedFixture } from '../fixtures/packaged.js'
import { codeHostOf } from '../providers/code-hosts.js'
import { nearestMatch, whyNeverSent } from '../providers/never-sent.js'
import { editBody } from '../replay/edit.js'
import { writeJson } from '../webhook/encodings.js'
import { createScene } from './scene.js'
import { DEMO } from './seed.js'

/** Events that have a template or, failing that, a fixture in this package: `event` or `event.action`. */
export function triggers(provider: string): string[] {
  const { templates, actions } = codeHostOf(provider)
  // Other fixtures are variants of an event.
  const isEvent = (name: string): boolean =>
    name.split('.').length <= 2 && whyNeverSent(name, provider, actions) === undefined
  return [...new Set([...Object.keys(templates), ...packagedEvents(folderOf(provider)).filter(isEvent)])]
}

/**
 * Creates an unsigned delivery about the sandbox's repository, as the provider would send it now. An event without its
 * action means the usual action.
 * @throws RelayError `usage` when nothing is known of the event.
 */
export function synthesize(provider: string, text: string, now: number): Fixture {
  const { webhook } = codeHostOf(provider)
  const all = triggers(provider)
  const name = all.find((each) => each === text) ?? all.find((each) => each.startsWith(`${text}.`))
  if (name === undefined) {
    const near = nearestMatch(text, byEvent(all))
    const hint = near === undefined ? '' : ` (did you mean ${near}?)`
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}${hint}: relay trigger --list has them`,
    )
  }
  const [event = ''] = name.split('.')
  const delivery = randomUUID()
  const headers = webhook.headers(event, delivery)
  return { relay: 1, provider, event, delivery, headers, body: payloadOf(provider, name, now) }
}

function byEvent(names: readonly string[]): ReadonlyMap<string, string[]> {
  const actions = new Map<string, string[]>()
  for (const name of names) {
    const [event = '', action] = name.split('.')
    actions.set(event, [...(actions.get(event) ?? []), ...(action === undefined ? [] : [action])])
  }
  return actions
}

function payloadOf(provider: string, name: string, now: number): string {
  const { templates, webhook } = codeHostOf(provider)
  const template = templates[name]
  const style = webhook.style(name.split('.')[0] ?? '')
  if (template) return writeJson(style, template(createScene(now)))
  const body = fixtureBody(packagedFixture(folderOf(provider), name))
  const { repository }: { repository?: object } = JSON.parse(Buffer.from(body).toString())
  const edits = repository ? [{ path: ['repository', 'full_name'], value: DEMO }] : []
  return Buffer.from(editBody(body, edits, { form: false, style })).toString()
}

function folderOf(provider: string): string {
  return provider === 'gitea' ? 'gitea' : 'github'
}
