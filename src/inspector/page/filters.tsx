import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryStatus, ListQuery } from '../api.js'
import { addressOf, formatQuery, isFiltered, parseQuery } from './address.js'
import { minuteTime } from './format.js'
import { go, view } from './model.js'
import { Icon } from './parts.js'

/** After the last key, so that a word is searched for and not each of its letters. */
const TYPING_MS = 300

const STATUSES: Readonly<Record<DeliveryStatus, string>> = {
  failed: 'failed',
  waiting: 'waiting',
  succeeded: 'succeeded',
  none: 'no target',
}

const SPANS: Readonly<Record<string, string>> = {
  '15m': 'last 15 minutes',
  '1h': 'last hour',
  '24h': 'last day',
  '7d': 'last 7 days',
}

/** The filters, applied while they are typed. Fields are named as in the address, and a render never changes what they hold. */
export function Filters({ query }: { readonly query: ListQuery }) {
  const form = useRef<HTMLFormElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const [initial] = useState(query)
  const apply = (): void => {
    clearTimeout(timer.current)
    if (form.current) showList(queryOf(form.current, query))
  }
  useEffect(() => {
    if (form.current) fill(form.current, query)
  }, [formatQuery(query)])
  const { since, until } = query
  const isOwn = since !== undefined && SPANS[since] === undefined
  return (
    <form
      ref={form}
      class="filters"
      role="search"
      aria-label="Filter deliveries"
      onInput={() => {
        clearTimeout(timer.current)
        timer.current = setTimeout(apply, TYPING_MS)
      }}
      onSubmit={(event) => {
        event.preventDefault()
        apply()
      }}
    >
      <label class="field field-search">
        <span class="sr-only">Text in the payload</span>
        <Icon name="search" />
        <input
          type="search"
          name="text"
          defaultValue={initial.text}
          placeholder="Text in the payload"
          autoComplete="off"
        />
      </label>
      <Field label="Event" name="event" value={initial.event} placeholder="event" />
      <Field label="Repository" name="repo" value={initial.repo} placeholder="repository" />
      <Choices label="Status" name="status" none="any status" choices={STATUSES} />
      <Choices
        label="Time"
        name="since"
        none="any time"
        choices={isOwn ? { ...SPANS, [since]: describeSpan(since, until) } : SPANS}
      />
      {isFiltered(query) ? (
        <a class="button button-quiet" href={addressOf({ page: 'list', query: {} })}>
          <Icon name="close" />
          Clear
        </a>
      ) : null}
    </form>
  )
}

interface FieldProps {
  readonly label: string
  readonly name: keyof ListQuery
}

function Field({
  label,
  name,
  value,
  placeholder,
}: FieldProps & { readonly value: string | undefined; readonly placeholder: string }) {
  return (
    <label class="field">
      <span class="sr-only">{label}</span>
      <input
        name={name}
        defaultValue={value}
        placeholder={placeholder}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
      />
    </label>
  )
}

interface ChoicesProps extends FieldProps {
  readonly none: string
  readonly choices: Readonly<Record<string, string>>
}

function Choices({ label, name, none, choices }: ChoicesProps) {
  return (
    <label class="field">
      <span class="sr-only">{label}</span>
      <select name={name}>
        <option value="">{none}</option>
        {Object.entries(choices).map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
      </select>
    </label>
  )
}

/** A time that is not among the choices, as the address says it: `14:02 to 14:10`, `since 3h`. */
function describeSpan(since: string, until: string | undefined): string {
  const [from, to] = [Date.parse(since), Date.parse(until ?? '')]
  if (Number.isNaN(from)) return `since ${since}`
  return Number.isNaN(to) ? `since ${minuteTime(from)}` : `${minuteTime(from)} to ${minuteTime(to)}`
}

function queryOf(form: HTMLFormElement, current: ListQuery): ListQuery {
  const params = new URLSearchParams()
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') params.set(name, value)
  const chosen = parseQuery(`?${params}`)
  // An end belongs to the beginning that the address has; another choice of time has none.
  const isSameTime = (chosen.since ?? '') === (current.since ?? '')
  return isSameTime && current.until ? { ...chosen, until: current.until } : chosen
}

/** Leaves a delivery open next to the list while the filters change. */
function showList(query: ListQuery): void {
  const { value } = view
  const stays = value.page === 'delivery' || value.page === 'compare'
  go(stays ? { ...value, query } : { page: 'list', query }, { replace: true })
}

/** Fields show what the address says, except the one that is being typed in. */
function fill(form: HTMLFormElement, query: ListQuery): void {
  const values = new Map<string, string>(Object.entries(query))
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select'))
    if (field !== document.activeElement) field.value = values.get(field.name) ?? ''
}
