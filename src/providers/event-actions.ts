/** The events that a code host sends, each with its actions: none, some, or any (`*`). */
export type EventActions = ReadonlyMap<string, readonly string[]>

/** Reads `event: action action …` from every line that names an event; the others continue the line before. */
export function eventActions(text: string): EventActions {
  const entries = text.split(/\s+(?=\w+:)/).filter((entry) => entry !== '')
  return new Map(
    entries.map((entry) => {
      const [event = '', actions = ''] = entry.split(':')
      return [event, actions.split(/\s+/).filter(Boolean)] as const
    }),
  )
}
