/** Forms of a signed time: Unix seconds or milliseconds, or text by RFC 3339. */
export const TIME_UNITS = ['s', 'ms', 'rfc3339'] as const
export type TimeUnit = (typeof TIME_UNITS)[number]

/**
 * Each form has one length, or an end that nothing else has, so that a time is found next to other text without a
 * separator. Ten digits of seconds are the years 2001 to 2286, as are thirteen of milliseconds.
 */
const FORMS: Readonly<Record<TimeUnit, RegExp>> = {
  s: /\d{10}/,
  ms: /\d{13}/,
  rfc3339: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)/,
}
const WHOLE = new Map(TIME_UNITS.map((unit) => [unit, new RegExp(`^${FORMS[unit].source}$`)] as const))

const WORDS: Readonly<Record<TimeUnit, string>> = {
  s: 'Unix seconds',
  ms: 'Unix milliseconds',
  rfc3339: 'a date of RFC 3339',
}

/** Names a form of time in a sentence. */
export function timeWords(unit: TimeUnit): string {
  return WORDS[unit]
}

/** Reads a time. Milliseconds since 1970-01-01 UTC; undefined for text of another form. */
export function parseTime(text: string, unit: TimeUnit): number | undefined {
  if (WHOLE.get(unit)?.test(text) !== true) return undefined
  const time = unit === 'rfc3339' ? Date.parse(text) : Number(text) * (unit === 's' ? 1000 : 1)
  return Number.isNaN(time) ? undefined : time
}

/** Unit of a time in text. Undefined for other text. */
export function unitOf(text: string): TimeUnit | undefined {
  return TIME_UNITS.find((unit) => parseTime(text, unit) !== undefined)
}

/** Writes a time, in milliseconds since 1970-01-01 UTC. */
export function timeText(time: number, unit: TimeUnit): string {
  if (unit === 'rfc3339') return new Date(time).toISOString()
  return String(unit === 's' ? Math.floor(time / 1000) : Math.floor(time))
}

/** Position at which a time of this form begins in a text; -1 for none. */
export function findTime(text: string, unit: TimeUnit): number {
  return text.search(FORMS[unit])
}
