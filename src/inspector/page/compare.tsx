import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, DeliveryLine, Header, ListQuery } from '../api.js'
import { addressOf } from './address.js'
import { bodyOf, useApi } from './client.js'
import type { CompareView } from './code.js'
import { NotLoaded, nameOf } from './delivery.js'
import { Dialog } from './dialog.js'
import { counted } from './format.js'
import { EventName, lines, Subject } from './list.js'
import { dialog, focusHeading, go, isNarrow, messageFrom, query as shownQuery } from './model.js'
import { Button, Icon, Section, Time, Visible } from './parts.js'
import { payloadOf } from './payload.js'
import { pretty } from './pretty.js'

interface CompareProps {
  readonly n: number
  readonly other: number
  readonly query: ListQuery
}

/** How two deliveries differ: payload and headers. The older one is the one before. */
export function Compare({ n, other, query }: CompareProps) {
  const [first, second] = n < other ? [n, other] : [other, n]
  const before = useApi<DeliveryDetail>(`deliveries/${first}`, () => false)
  const after = useApi<DeliveryDetail>(`deliveries/${second}`, () => false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `#${first} and #${second} compared · relay`
    focusHeading(heading.current)
  }, [first, second])
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
            <Side detail={before.value} query={query} class="mark-failed" sign="−" />
            <Side detail={after.value} query={query} class="mark-succeeded" sign="+" />
          </p>
        </header>
        <NotLoaded loaded={before} n={first} query={query} />
        <NotLoaded loaded={after} n={second} query={query} />
        {before.value && after.value ? (
          <Comparison key={`${first}-${second}`} before={before.value} after={after.value} />
        ) : null}
      </article>
    </section>
  )
}

interface SideProps {
  readonly detail: DeliveryDetail | null
  readonly query: ListQuery
  readonly class: string
  readonly sign: string
}

function Side({ detail, query, class: name, sign }: SideProps) {
  if (!detail) return <span />
  return (
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
  )
}

function Comparison({ before, after }: { readonly before: DeliveryDetail; readonly after: DeliveryDetail }) {
  const isText = before.bodyKind !== 'bytes' && after.bodyKind !== 'bytes'
  const payloads = (): Promise<readonly string[]> =>
    Promise.all(
      [before, after].map(async ({ n, bodyKind }) => {
        const text = payloadOf(await bodyOf(n), bodyKind)
        return bodyKind === 'text' ? text.replaceAll(/\r\n?/g, '\n') : pretty(text).text
      }),
    )
  return (
    <>
      {isText ? (
        <Differences title="Payload" texts={payloads} isJson={before.bodyKind !== 'text'} />
      ) : (
        <Section title="Payload">
          <p class="quiet">One of them is not UTF-8 text, so they cannot be compared.</p>
        </Section>
      )}
      <Differences title="Headers" texts={async () => [asText(before.headers), asText(after.headers)]} />
    </>
  )
}

function asText(headers: readonly Header[]): string {
  const named = headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`)
  return named.toSorted().join('\n')
}

interface DifferencesProps {
  readonly title: string
  readonly texts: () => Promise<readonly string[]>
  readonly isJson?: boolean
}

function Differences({ title, texts, isJson = false }: DifferencesProps) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<CompareView | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [isWhole, setWhole] = useState(false)
  useEffect(() => {
    let opened: CompareView | undefined
    let isGone = false
    const open = async (): Promise<void> => {
      const [{ compare }, [before = '', after = '']] = await Promise.all([import('./code.js'), texts()])
      if (isGone || !box.current) return
      const options = { label: title, isNarrow: isNarrow.value, isWhole, isJson }
      opened = compare(box.current, before, after, options)
      setView(opened)
    }
    open().catch((error: unknown) => setProblem(messageFrom(error)))
    return () => {
      isGone = true
      opened?.destroy()
    }
  }, [isWhole, isNarrow.value])
  const count = view?.differences ?? 0
  return (
    <Section
      title={title}
      {...(view && { count: count === 0 ? 'no difference' : counted(count, 'difference') })}
      tools={
        <span class="section-tools">
          {count > 1 ? (
            <>
              <Button class="link" onClick={() => view?.previous()}>
                Previous
              </Button>
              <Button class="link" onClick={() => view?.next()}>
                Next
              </Button>
            </>
          ) : null}
          <button type="button" class="link" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show differences only' : 'Show all'}
          </button>
        </span>
      }
    >
      <div class="code code-view compare-view" ref={box} />
      {problem === null ? null : <p class="error-text">{problem}</p>}
    </Section>
  )
}

/** The deliveries offered: those that are most alike, the newest first. */
const MAX_OFFERED = 8

/** Chooses the delivery to compare with: one of those that are alike, or any by its number. */
export function CompareDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const input = useRef<HTMLInputElement>(null)
  const [offered] = useState(() => alike(detail))
  const compare = (other: number): void => {
    dialog.value = null
    go({ page: 'compare', n: detail.n, other, query: shownQuery.value })
  }
  return (
    <Dialog title={`Compare #${detail.n} with`}>
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
      {offered.length === 0 ? null : <p class="quiet">Or with one like it:</p>}
      <ul class="offered">
        {offered.map((line) => (
          <li>
            <button type="button" class="offer" onClick={() => compare(line.n)}>
              <span class="offer-n">#{line.n}</span> <EventName line={line} />{' '}
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

/** Others of the same event, those of the same subject first. */
function alike(detail: DeliveryDetail): readonly DeliveryLine[] {
  const score = (line: DeliveryLine): number =>
    Number(line.action === detail.action) +
    2 * Number(line.repo === detail.repo) +
    4 * Number(line.subject === detail.subject)
  return lines.value
    .filter(({ n, event }) => n !== detail.n && event === detail.event)
    .toSorted((one, other) => score(other) - score(one))
    .slice(0, MAX_OFFERED)
}
