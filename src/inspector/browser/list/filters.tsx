import { useEffect, useRef, useState } from 'hono/jsx/dom'
import { formatQuery, parseQuery } from '../../address.js'
import type { ListQuery } from '../../api.js'
import { FilterForm } from '../../view/filters.js'
import { go, viewStore } from '../model/navigation.js'

/** After the last key, so that a word is searched for and not each of its letters. */
const TYPING_MS = 300

/** The filters, applied while they are typed. */
export function Filters({ query }: { readonly query: ListQuery }) {
  const element = useRef<HTMLDivElement>(null)
  const [initial] = useState(query)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const apply = (): void => {
    clearTimeout(timer.current ?? undefined)
    const form = element.current?.querySelector('form')
    if (form) showList(queryOf(form, query))
  }
  useEffect(() => fill(element.current, query), [formatQuery(query)])
  return (
    <div
      ref={element}
      onInput={() => {
        clearTimeout(timer.current ?? undefined)
        timer.current = setTimeout(apply, TYPING_MS)
      }}
      onSubmit={(event: Event) => {
        event.preventDefault()
        apply()
      }}
    >
      <FilterForm query={query} initial={initial} />
    </div>
  )
}

function queryOf(form: HTMLFormElement, current: ListQuery): ListQuery {
  const params = new URLSearchParams()
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') params.set(name, value)
  const { until, ...query } = parseQuery(`?${params}`)
  // A span of the strip has an end; another choice of time has none.
  return query.since !== undefined && query.since === current.since && until !== undefined
    ? { ...query, until }
    : query
}

/** Keeps a delivery open next to the list while the filters change. */
function showList(query: ListQuery): void {
  const view = viewStore.get()
  const next =
    view.page === 'delivery' || view.page === 'compare'
      ? { ...view, query }
      : { page: 'list' as const, query }
  go(next, { replace: true })
}

/** Fields show what the address says, except the one that is being typed in. */
function fill(element: HTMLElement | null, query: ListQuery): void {
  const values = new Map<string, string>(Object.entries(query))
  for (const field of element?.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select') ?? [])
    if (field !== document.activeElement) field.value = values.get(field.name) ?? ''
}
