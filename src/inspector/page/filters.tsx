import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { DeliveryStatus, ListQuery } from '../api.js'
import { addressOf, formatQuery, isFiltered, parseQuery } from './address.js'
import { formatTime } from './format.js'
import { formValues, go, view } from './model.js'
import { Icon } from './parts.js'

/** Delay after the last key, so that a word is searched for and not each of its letters. Milliseconds. */
const TYPING_MS = 300

const STATUSES: Readonly<Record<DeliveryStatus, string>> = {
  failed: 'failed attempts',
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

/** Choice for the time in the address if that has an end. */
const OWN = 'own'

interface FiltersProps {
  readonly query: ListQuery
  /** True if deliveries of other sources than the code host are listed. */
  readonly hasSources: boolean
}

/**
 * Filters, applied while the user types. Fields are named as in the address, and a render never changes their values.
 */
export function Filters({ query, hasSources }: FiltersProps) {
  const form = useRef<HTMLFormElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const apply = (): void => {
    clearTimeout(timer.current)
    if (form.current) showList(queryOf(form.current, query))
  }
  useLayoutEffect(() => {
    // Fields follow the address, except the one that the user is typing in.
    const shown = query.until ? { ...query, since: OWN } : query
    const values = new Map<string, string>(Object.entries(shown))
    for (const field of form.current?.querySelectorAll<HTMLInputElement>('input, select') ?? [])
      if (field !== document.activeElement) field.value = values.get(field.name) ?? ''
  }, [formatQuery(query)])
  const { since, until } = query
  const times = until
    ? { ...SPANS, [OWN]: describeSpan(since, until) }
    : withOwn(SPANS, since, describeSpan(since))
  const input = (name: 'event' | 'source' | 'repo', placeholder: string) => (
    <input name={name} placeholder={placeholder} autoComplete="off" autoCapitalize="off" spellcheck={false} />
  )
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
      <Field label="Text in the payload">
        <Icon name="search" />
        <input type="search" name="text" placeholder="Text in the payload" autoComplete="off" />
      </Field>
      {hasSources ? <Field label="Source">{input('source', 'source')}</Field> : null}
      <Field label="Event">{input('event', 'event')}</Field>
      <Field label="Repository">{input('repo', 'repository')}</Field>
      <Field label="Status">
        <Choices name="status" none="any status" choices={withOwn(STATUSES, query.status)} />
      </Field>
      <Field label="Time">
        <Choices name="since" none="any time" choices={times} />
      </Field>
      {isFiltered(query) ? (
        <a class="button button-quiet" href={addressOf({ page: 'list', query: {} })}>
          <Icon name="close" />
          Clear
        </a>
      ) : null}
    </form>
  )
}

function Field({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="sr-only">{label}</span>
      {children}
    </label>
  )
}

interface ChoicesProps {
  readonly name: keyof ListQuery
  readonly none: string
  readonly choices: Readonly<Record<string, string>>
}

function Choices({ name, none, choices }: ChoicesProps) {
  return (
    <select name={name}>
      <option value="">{none}</option>
      {Object.entries(choices).map(([value, text]) => (
        <option value={value}>{text}</option>
      ))}
    </select>
  )
}

/** Adds the value of the address to the choices if it is none of them. */
function withOwn(choices: ChoicesProps['choices'], value = '', text = value): ChoicesProps['choices'] {
  return value === '' || Object.hasOwn(choices, value) ? choices : { ...choices, [value]: text }
}

/** Describes a time that is not among the choices: `since 14:02:00 until 14:10:00`, `last hour until 14:10:00`. */
function describeSpan(since = '', until = ''): string {
  const from = SPANS[since] ?? (since && `since ${describeInstant(since)}`)
  return [from, until && `until ${describeInstant(until)}`].filter(Boolean).join(' ')
}

/** Formats an instant as `14:02:00`. A duration is unchanged. */
function describeInstant(text: string): string {
  const at = Date.parse(text)
  return Number.isNaN(at) ? text : formatTime(at, Date.now())
}

function queryOf(form: HTMLFormElement, { since = '', until = '' }: ListQuery): ListQuery {
  const chosen = formValues(form)
  if (chosen.get('since') === OWN) {
    chosen.set('since', since)
    chosen.set('until', until)
  }
  return parseQuery(`?${chosen}`)
}

/** Shows the filtered list, with the open delivery still next to it. */
function showList(query: ListQuery): void {
  const { value } = view
  const stays = value.page === 'delivery' || value.page === 'compare'
  go(stays ? { ...value, query } : { page: 'list', query }, { replace: true })
}
