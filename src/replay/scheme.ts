import type { Header } from '../journal/delivery.js'

/** What a provider's deliveries carry besides `X-Hub-Signature-256`, which all of them have. */
export interface Scheme {
  readonly eventHeader: string
  readonly deliveryHeader: string
  /** What a form's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
  /** Headers with the bare digest. */
  readonly digestHeaders: readonly string[]
  /** Whether JSON is written as Go writes it: `<`, `>`, `&` and two line separators escaped. */
  readonly goEscapes: boolean
}

const GITHUB: Scheme = {
  eventHeader: 'X-GitHub-Event',
  deliveryHeader: 'X-GitHub-Delivery',
  formSignature: 'body',
  digestHeaders: [],
  goEscapes: false,
}

const SCHEMES: Readonly<Record<string, Scheme>> = {
  github: GITHUB,
  sandbox: GITHUB,
  gitea: {
    eventHeader: 'X-Gitea-Event',
    deliveryHeader: 'X-Gitea-Delivery',
    formSignature: 'payload',
    digestHeaders: ['X-Gitea-Signature'],
    goEscapes: true,
  },
}

/** Any other provider's deliveries have the names that every relay accepts. */
const OTHER: Scheme = {
  ...GITHUB,
  eventHeader: 'X-Provider-Event',
  deliveryHeader: 'X-Provider-Delivery',
}

export function schemeOf(provider: string): Scheme {
  return SCHEMES[provider] ?? OTHER
}

/** The headers with one line of this name, in the place of the first that was there, else at the end. */
export function withHeader(headers: readonly Header[], name: string, value: string): Header[] {
  const isIt = ([each]: Header): boolean => each.toLowerCase() === name.toLowerCase()
  const first = headers.findIndex(isIt)
  if (first === -1) return [...headers, [name, value]]
  return headers.flatMap((line, at): Header[] =>
    at === first ? [[line[0], value]] : isIt(line) ? [] : [line],
  )
}
