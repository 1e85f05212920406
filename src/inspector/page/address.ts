import type { ListQuery } from '../api.js'

/** Path at which the inspector is mounted. */
export const BASE = '/inspect'

/** A view of the page, as its address describes it. */
export type View =
  | { readonly page: 'list'; readonly query: ListQuery }
  | { readonly page: 'delivery'; readonly n: number; readonly query: ListQuery }
  | { readonly page: 'compare'; readonly n: number; readonly other: number; readonly query: ListQuery }
  | { readonly page: 'refused'; readonly id?: number }
  | { readonly page: 'state' }
  /** Form for a one-time code. */
  | { readonly page: 'open' }

/** Filters in an address, in this order. `limit` is not part of an address. */
const FILTERS = ['event', 'source', 'repo', 'status', 'text', 'since', 'until', 'before'] as const

/** Parses a path and its query (`?…` or empty). Undefined for an address that the inspector does not have. */
export function parseAddress(path: string, search: string): View | undefined {
  const query = parseQuery(search)
  const [section, first, word, second, ...rest] = path.replace(BASE, '').split('/').filter(Boolean)
  if (rest.length > 0) return undefined
  if (section === undefined) return { page: 'list', query }
  if ((section === 'state' || section === 'open') && first === undefined) return { page: section }
  const [n, other] = [numberOf(first), numberOf(second)]
  if (section === 'refused' && first === undefined) return { page: 'refused' }
  if (section === 'refused' && n !== undefined && word === undefined) return { page: 'refused', id: n }
  if (section !== 'deliveries' || n === undefined) return undefined
  if (word === undefined) return { page: 'delivery', n, query }
  return word === 'compare' && other !== undefined ? { page: 'compare', n, other, query } : undefined
}

/** Formats the address of a view for {@link parseAddress}. */
export function addressOf(view: View): string {
  if (view.page === 'state' || view.page === 'open') return `${BASE}/${view.page}`
  if (view.page === 'refused') return `${BASE}/refused${view.id === undefined ? '' : `/${view.id}`}`
  const search = formatQuery(view.query)
  if (view.page === 'list') return `${BASE}/${search}`
  const compare = view.page === 'compare' ? `/compare/${view.other}` : ''
  return `${BASE}/deliveries/${view.n}${compare}${search}`
}

/** Parses the filters of an address. Empty, repeated and unknown values are left out. */
export function parseQuery(search: string): ListQuery {
  const params = new URLSearchParams(search)
  const given = FILTERS.map((name) => [name, params.get(name)?.trim() ?? ''] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

/** Formats the filters that are set as `?…`, or as an empty text. */
export function formatQuery(query: ListQuery): string {
  const params = new URLSearchParams()
  for (const name of FILTERS) if (query[name]) params.set(name, query[name])
  return params.size === 0 ? '' : `?${params.toString()}`
}

/** True if the query leaves out deliveries. `before` is no filter. */
export function isFiltered(query: ListQuery): boolean {
  return FILTERS.some((name) => name !== 'before' && Boolean(query[name]))
}

/** Parses the number of an entry in an address: 1 to 16 digits. */
function numberOf(text: string | undefined): number | undefined {
  const n = Number(text)
  return /^[1-9]\d{0,15}$/.test(text ?? '') && Number.isSafeInteger(n) ? n : undefined
}
