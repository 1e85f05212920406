import { topLevelFields } from '../../src/json/fields.js'

/** What smee's server leaves of a body: it parses the JSON, and writes its message from the value. */
export function throughSmee(body: string): string | undefined {
  const event = JSON.stringify({ 'x-github-event': 'push', body: JSON.parse(body) as unknown, timestamp: 1 })
  return topLevelFields(event, 10).get('body')
}

/** What a server leaves that reads forms too, as Express does. */
export function formThroughSmee(body: string): string {
  return JSON.stringify(Object.fromEntries(new URLSearchParams(body)))
}
