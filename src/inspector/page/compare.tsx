import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, DeliveryLine, DeliveryPage, ListQuery } from '../api.js'
import { addressOf } from './address.js'
import { useApi } from './client.js'
import { CodeBox } from './code-box.js'
import type { CompareView } from './code.js'
import { NotLoaded, nameOf } from './delivery.js'
import { Dialog } from './dialogs.js'
import { counted } from './format.js'
import { EventName, Subject } from './row.js'
import { dialog, focusHeading, go, isNarrow, query as shownQuery } from './model.js'
import { Button, Icon, Section, Time, Visible } from './parts.js'
import { hasJson, payloadOf } from './payload.js'
import { pretty } from './pretty.js'

export interface CompareProps {
  readonly n: number
  readonly other: number
  readonly query: ListQuery
}

/** Comparison of the payloads and headers of two deliveries. The older one is the first. */
export function Compare({ n, other, query }: CompareProps) {
  const [first, second] = n < other ? [n, other] : [other, n]
  const before = useApi<DeliveryDetail>(`deliveries/${first}`, () => false)
  const after = useApi<DeliveryDetail>(`deliveries/${second}`, () => false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `#${first} and #${second} compared · relay`
    focusHeading(heading.current)
  }, [first, second])
  const side = (detail: DeliveryDetail | null, name: string, sign: string) =>
    detail ? (
      <span>
        <span class={name} aria-hidden="true">
          {sign}{' '}
        </span>
        <a href={addressOf({ page: 'delivery', n: detail.n, query })}>
          #{detail.n} <Visible text={nameOf(detail)} />
        </a>{' '}
        <span class="quiet">
          <Time at={detail.receivedAt} />
        </span>
      </span>
    ) : null
  return (
    <section class="pane pane-detail" aria-label={`#${first} and #${second} compared`}>
      <article class="detail detail-wide">
        <header class="head">
          <div class="head-line">
            <a class="button button-quiet" href={addressOf({ page: 'delivery', n, query })}>
              <Icon name="back" />#{n}
            </a>
          </div>
          <h1 tabIndex={-1} ref={heading}>
            #{first} and #{second} compared
          </h1>
          <p class="compared">
            {side(before.value, 'mark-failed', '−')}
            {side(after.value, 'mark-succeeded', '+')}
          </p>
        </header>
        <NotLoaded loaded={before} n={first} query={query} />
        <NotLoaded loaded={after} n={second} query={query} />
        {before.value && after.value ? (
          <Comparison key={`${first}-${second}`} pair={[before.value, after.value]} />
        ) : null}
      </article>
    </section>
  )
}

function Comparison({ pair }: { readonly pair: readonly DeliveryDetail[] }) {
  return (
    <>
      {pair.some(({ bodyKind }) => bodyKind === 'bytes') ? (
        <Section title="Payload">
          <p class="quiet">One of them is not UTF-8 text, so they cannot be compared.</p>
        </Section>
      ) : (
        <Differences title="Payload" pair={pair} textOf={readablePayload} isJson={pair.every(hasJson)} />
      )}
      <Differences title="Headers" pair={pair} textOf={sortedHeaders} isJson={false} />
    </>
  )
}

async function readablePayload(detail: DeliveryDetail): Promise<string> {
  const text = await payloadOf(detail)
  return hasJson(detail) ? pretty(text).text : text.replaceAll(/\r\n?/g, '\n')
}

async function sortedHeaders({ headers }: DeliveryDetail): Promise<string> {
  const named = headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`)
  return named.toSorted().join('\n')
}

interface DifferencesProps {
  readonly title: string
  readonly pair: readonly DeliveryDetail[]
  readonly textOf: (detail: DeliveryDetail) => Promise<string>
  readonly isJson: boolean
}

function Differences({ title, pair, textOf, isJson }: DifferencesProps) {
  const [view, setView] = useState<CompareView | null>(null)
  const [isWhole, setWhole] = useState(false)
  const options = { label: title, isNarrow: isNarrow.value, isWhole, isJson }
  const count = view?.differences ?? 0
  const tool = (text: string, onClick: () => void) => (
    <Button class="link" onClick={onClick}>
      {text}
    </Button>
  )
  return (
    <Section
      title={title}
      count={view ? counted(count, 'difference').replace(/^0 .*/, 'no difference') : undefined}
      tools={
        <span class="section-tools">
          {count > 1 ? [tool('Previous', () => view?.previous()), tool('Next', () => view?.next())] : null}
          <button type="button" class="link" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show differences only' : 'Show all'}
          </button>
        </span>
      }
    >
      <CodeBox
        what={`the ${title.toLowerCase()}`}
        version={JSON.stringify(options)}
        read={() => Promise.all(pair.map(textOf))}
        show={({ compare }, into, texts) => compare(into, texts, options)}
        onView={(opened) => opened && setView(opened)}
      />
    </Section>
  )
}

/** Number of deliveries that are offered, of those that one request reads. */
const MAX_OFFERED = 8
const MAX_READ = 100

/** Dialog to choose the delivery to compare with: a similar one, or any by its number. */
export function CompareDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const input = useRef<HTMLInputElement>(null)
  const { n, event, source = '', editedFrom } = detail
  const query = new URLSearchParams({ event, source, limit: String(MAX_READ) })
  const { value } = useApi<DeliveryPage>(`deliveries?${query}`, () => false)
  const offered = alike(detail, value?.deliveries ?? [])
  const compare = (other: number): void => {
    dialog.value = null
    go({ page: 'compare', n, other, query: shownQuery.value })
  }
  return (
    <Dialog title={`Compare #${n} with`}>
      <form
        class="line-form"
        onSubmit={(event) => {
          event.preventDefault()
          compare(Number(input.current?.value))
        }}
      >
        <label for="other">Number</label>
        <input id="other" ref={input} data-first type="number" min={1} step={1} required />
        <button type="submit" class="button button-main">
          Compare
        </button>
      </form>
      {offered.length === 0 && editedFrom === undefined ? null : <p class="quiet">Or with one like it:</p>}
      <ul class="offered">
        {editedFrom === undefined ? null : (
          <li>
            <button type="button" class="offer" onClick={() => compare(editedFrom)}>
              <span>#{editedFrom}</span> <span>the original</span>
            </button>
          </li>
        )}
        {offered.map((line) => (
          <li>
            <button type="button" class="offer" onClick={() => compare(line.n)}>
              <span>#{line.n}</span> <EventName line={line} />{' '}
              <span class="quiet">
                <Subject line={line} />
              </span>
              <Time class="quiet" at={line.receivedAt} />
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

/** Returns other deliveries of the same event, without its original, the most similar and newest first. */
function alike(detail: DeliveryDetail, lines: readonly DeliveryLine[]): readonly DeliveryLine[] {
  const score = (line: DeliveryLine): number =>
    Number(line.action === detail.action) +
    2 * Number(line.repo === detail.repo) +
    4 * Number(line.subject === detail.subject)
  return lines
    .filter(({ n, event }) => n !== detail.n && n !== detail.editedFrom && event === detail.event)
    .toSorted((one, other) => score(other) - score(one))
    .slice(0, MAX_OFFERED)
}
