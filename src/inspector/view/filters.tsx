import { addressOf, BASE, isFiltered } from '../address.js'
import type { DeliveryStatus, ListQuery } from '../api.js'
import { minuteTime } from './format.js'
import { Icon } from './icon.js'

const STATUS_WORDS: Readonly<Record<DeliveryStatus, string>> = {
  failed: 'failed',
  waiting: 'waiting',
  succeeded: 'succeeded',
  none: 'no target',
}

const SPANS = [
  ['15m', 'last 15 minutes'],
  ['1h', 'last hour'],
  ['24h', 'last day'],
  ['7d', 'last 7 days'],
] as const

interface FilterFormProps {
  readonly query: ListQuery
  /** What the text fields hold at first. In a browser it stays the same, so that rendering never replaces what is being typed. */
  readonly initial?: ListQuery
}

/** The filters of the list: a form that works without a script, and whose fields are named as in the address. */
export function FilterForm({ query, initial = query }: FilterFormProps) {
  const { text = '', event = '', repo = '' } = initial
  const { status = '', until } = query
  return (
    <form class="filters" action={`${BASE}/`} method="get" role="search" aria-label="Filter deliveries">
      <label class="field field-search">
        <span class="sr-only">Text in the payload</span>
        <Icon name="search" />
        <input type="search" name="text" value={text} placeholder="Text in the payload" autocomplete="off" />
      </label>
      <Field label="Event" name="event" value={event} placeholder="any event" />
      <Field label="Repository" name="repo" value={repo} placeholder="any repository" />
      <label class="field">
        <span class="sr-only">Status</span>
        <select name="status" value={status}>
          <Choice value="" current={status} text="any status" />
          {Object.entries(STATUS_WORDS).map(([each, words]) => (
            <Choice value={each} current={status} text={words} />
          ))}
        </select>
      </label>
      <TimeField query={query} />
      {until === undefined ? null : <input type="hidden" name="until" value={until} />}
      <noscript>
        <button type="submit">Apply</button>
      </noscript>
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
  readonly value: string
  readonly placeholder: string
}

function Field({ label, name, value, placeholder }: FieldProps) {
  return (
    <label class="field">
      <span class="sr-only">{label}</span>
      <input
        name={name}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
      />
    </label>
  )
}

/** A choice of spans; the address's own, where it is none of them, is a choice too. */
function TimeField({ query: { since = '', until } }: { readonly query: ListQuery }) {
  const isOwn = since !== '' && !SPANS.some(([span]) => span === since)
  return (
    <label class="field">
      <span class="sr-only">Time</span>
      <select name="since" value={since}>
        <Choice value="" current={since} text="any time" />
        {SPANS.map(([span, text]) => (
          <Choice value={span} current={since} text={text} />
        ))}
        {isOwn ? <Choice value={since} current={since} text={describeSpan(since, until)} /> : null}
      </select>
    </label>
  )
}

/** `14:02 to 14:10`, or `since 1h` as it was written. */
export function describeSpan(since: string, until: string | undefined): string {
  const [from, to] = [Date.parse(since), Date.parse(until ?? '')]
  if (Number.isNaN(from)) return `since ${since}`
  return Number.isNaN(to) ? `since ${minuteTime(from)}` : `${minuteTime(from)} to ${minuteTime(to)}`
}

interface ChoiceProps {
  readonly value: string
  readonly current: string
  readonly text: string
}

function Choice({ value, current, text }: ChoiceProps) {
  return (
    <option value={value} selected={value === current}>
      {text}
    </option>
  )
}
