/** Words that depend on the profile: numbers of entries and `last`, events, profiles, events that can be triggered. */
export const WORD_KINDS = ['entries', 'events', 'profiles', 'triggers'] as const
export type WordKind = (typeof WORD_KINDS)[number]
