import { useRef, useState } from 'preact/hooks'
import type { Sent, TriggerExample, TriggerList, TriggerRequest } from '../api.js'
import { getJson, postJson, useApi, whyNot } from './client.js'
import { Dialog } from './dialogs.js'
import { SendDialog, TargetField } from './edit.js'
import { counted } from './format.js'
import { closing, dialog } from './model.js'
import { Button, Empty, Visible } from './parts.js'

/** Button that opens the dialog. */
export function TriggerButton() {
  return (
    <Button
      icon="send"
      reason={whyNot.value}
      onClick={() => {
        dialog.value = { kind: 'trigger' }
      }}
    >
      <span>Trigger…</span>
    </Button>
  )
}

/** An event to trigger. Without an event, a payload of the user's own. */
interface Choice {
  readonly source: string
  readonly event?: string
}

/** Dialog that triggers a delivery: first the choice of an event, then its payload. */
export function TriggerDialog() {
  const { value, problem } = useApi<TriggerList>('triggers', ({ type }) => type === 'state')
  const [choice, setChoice] = useState<Choice | null>(null)
  if (choice)
    return <PayloadDialog choice={choice} targets={value?.targets ?? []} onBack={() => setChoice(null)} />
  return (
    <Dialog title="Trigger a delivery">
      <Choices sources={value?.sources} onChoice={setChoice} />
      {problem && !value ? <Empty title={problem.message} /> : null}
    </Dialog>
  )
}

interface ChoicesProps {
  /** Undefined until they are read. */
  readonly sources: TriggerList['sources'] | undefined
  readonly onChoice: (choice: Choice) => void
}

const OWN = 'A payload of your own'

/** The events of all sources, with a search. Arrow keys move through what it finds. */
function Choices({ sources = [], onChoice }: ChoicesProps) {
  const box = useRef<HTMLDivElement>(null)
  const [search, setSearch] = useState('')
  const found = findEvents(sources, search)
  const events = found.flatMap(({ source, events }) => events.map((event) => ({ source, event })))
  return (
    <div class="triggers" ref={box} onKeyDown={(event) => moveThrough(box.current, event)}>
      <form
        class="line-form"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          const [first] = events
          if (first) onChoice(first)
        }}
      >
        <input
          data-first
          type="search"
          aria-label="Search the events"
          placeholder="Search the events"
          autoComplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
      </form>
      <p class="quiet" role="status">
        {sources.length === 0
          ? 'Reading the events …'
          : `${counted(events.length, 'event')} of ${counted(found.length, 'source')}`}
      </p>
      {found.map((each) => (
        <SourceEvents key={each.source} found={each} onChoice={onChoice} />
      ))}
    </div>
  )
}

/** Moves the focus between the search and what it found. */
function moveThrough(box: HTMLElement | null, event: KeyboardEvent): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  event.preventDefault()
  const all = [...(box?.querySelectorAll<HTMLElement>('input, .offer') ?? [])]
  const at = all.findIndex((each) => each === document.activeElement)
  all[Math.max(0, Math.min(all.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1)))]?.focus()
}

interface FoundEvents {
  readonly source: string
  readonly scheme: string
  readonly events: readonly string[]
  /** True if {@link OWN} is found, too. */
  readonly hasOwn: boolean
}

/** Finds the events whose name, with that of the source, has all words of the search. */
function findEvents(sources: TriggerList['sources'], search: string): readonly FoundEvents[] {
  const words = search.toLowerCase().split(/\s+/)
  const isFound = (source: string, text: string): boolean => {
    const name = `${source}/${text}`.toLowerCase()
    return words.every((word) => name.includes(word))
  }
  return sources
    .map(({ source, scheme, events }) => ({
      source,
      scheme,
      events: events.filter((event) => isFound(source, event)),
      hasOwn: isFound(source, OWN),
    }))
    .filter(({ events, hasOwn }) => events.length > 0 || hasOwn)
}

interface SourceEventsProps extends Pick<ChoicesProps, 'onChoice'> {
  readonly found: FoundEvents
}

function SourceEvents({ found: { source, scheme, events, hasOwn }, onChoice }: SourceEventsProps) {
  return (
    <section aria-label={source}>
      <h3>
        <Visible text={source} /> {scheme === source ? null : <Visible class="quiet" text={scheme} />}
      </h3>
      <ul class="offered">
        {events.map((event) => (
          <li key={event}>
            <button type="button" class="offer" onClick={() => onChoice({ source, event })}>
              <Visible text={event} />
            </button>
          </li>
        ))}
        {hasOwn ? (
          <li>
            <button type="button" class="offer" onClick={() => onChoice({ source })}>
              <span class="quiet">{OWN}</span>
            </button>
          </li>
        ) : null}
      </ul>
    </section>
  )
}

interface PayloadProps {
  readonly choice: Choice
  readonly targets: TriggerList['targets']
  /** Called to choose another event. */
  readonly onBack: () => void
}

const OUTCOME = 'Sent as its sender would: signed with the secret of the source, with a new delivery id.'

function PayloadDialog({ choice: { source, event }, targets, onBack }: PayloadProps) {
  const isOwn = event === undefined
  const read = async (): Promise<string> => {
    if (isOwn) return ''
    const query = new URLSearchParams({ source, event })
    return (await getJson<TriggerExample>(`triggers/example?${query}`)).text
  }
  const send = (fields: URLSearchParams, body: string): Promise<Sent> => {
    const own = fields.get('event')?.trim() || undefined
    const target = fields.get('target') || undefined
    const request: TriggerRequest = { source, ...(isOwn ? { event: own } : { example: event }), body, target }
    return postJson<Sent>('trigger', request)
  }
  const title = isOwn ? `Trigger a payload of your own from ${source}` : `Trigger ${event} of ${source}`
  return (
    <SendDialog title={title} read={read} outcome={OUTCOME} send={send}>
      <div class="edit-fields">
        {isOwn ? (
          <label>
            Event
            <input
              name="event"
              placeholder="as the payload names it"
              maxLength={100}
              autoComplete="off"
              spellcheck={false}
            />
          </label>
        ) : null}
        <TargetField targets={targets} />
        <button
          type="button"
          class="button button-quiet"
          onClick={() => {
            if (closing.isAllowed()) onBack()
          }}
        >
          Other event
        </button>
      </div>
    </SendDialog>
  )
}
