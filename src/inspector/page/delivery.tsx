import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { AttemptLine, DeliveryDetail, ListQuery, LiveEvent, TargetDetail } from '../api.js'
import { addressOf, BASE } from './address.js'
import { bodyOf, getText, type Loaded, useApi, whyNot, whyNotRead } from './client.js'
import { counted, formatMs, formatSize } from './format.js'
import { Badges, EventName, Subject } from './list.js'
import { copy, detail as shownDetail, dialog, focusHeading, isNarrow } from './model.js'
import {
  Button,
  CardHead,
  Empty,
  Fact,
  Headers,
  Icon,
  Lines,
  MarkWord,
  Section,
  statusOf,
  Time,
  Visible,
} from './parts.js'
import { Payload } from './payload.js'

/** One delivery, kept up to date while it is shown. */
export function Delivery({ n, query }: { readonly n: number; readonly query: ListQuery }) {
  useLayoutEffect(() => {
    // At once, and not when it is known what it is.
    void import('./code.js')
    bodyOf(n).catch(() => {})
  }, [n])
  const loaded = useApi<DeliveryDetail>(`deliveries/${n}`, (event) => concerns(event, n))
  const pane = useRef<HTMLElement>(null)
  const detail = loaded.value
  const isLoaded = detail !== null
  useEffect(() => {
    shownDetail.value = detail
  }, [detail])
  useEffect(() => () => void (shownDetail.value = null), [])
  useEffect(() => {
    pane.current?.scrollTo({ top: 0 })
    if (!detail) return
    document.title = `#${n} ${nameOf(detail)} · relay`
    focusHeading(pane.current?.querySelector('h1'))
  }, [n, isLoaded])
  return (
    <section class="pane pane-detail" aria-label={`Delivery #${n}`} ref={pane}>
      <NotLoaded loaded={loaded} n={n} query={query} />
      {detail ? <Detail key={n} detail={detail} query={query} /> : null}
    </section>
  )
}

function concerns(event: LiveEvent, n: number): boolean {
  if (event.type === 'removed') return n < event.below
  return event.type === 'lines' && event.lines.some((line) => line.n === n)
}

export function nameOf({ event, action }: Pick<DeliveryDetail, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

interface NotLoadedProps {
  readonly loaded: Loaded<unknown>
  readonly n: number
  readonly query: ListQuery
}

/** Says why a delivery is not there, or that what is shown is all that is left of it. */
export function NotLoaded({ loaded: { value, problem }, n, query }: NotLoadedProps) {
  if (!problem) return value === null ? <p class="loading quiet">Reading #{n} …</p> : null
  if (problem.isMissing && value !== null)
    return (
      <p class="banner banner-warn" role="status">
        Retention removed #{n} from the journal. What you see is what was read before.
      </p>
    )
  if (value !== null) return null
  return (
    <>
      <h1 class="sr-only">#{n}</h1>
      <Empty title={problem.isMissing ? `#${n} is not in the journal` : `#${n} could not be read`}>
        <p>
          {problem.isMissing
            ? 'There is no entry with this number, or retention has removed it.'
            : problem.message}
        </p>
        <p>
          <a href={addressOf({ page: 'list', query })}>Back to the deliveries</a>
        </p>
      </Empty>
    </>
  )
}

/** On a phone the payload comes before what can be done with it. */
function Detail({ detail, query }: { readonly detail: DeliveryDetail; readonly query: ListQuery }) {
  const targets = <Targets key="targets" detail={detail} />
  const payload = <Payload key="payload" detail={detail} />
  const actions = <Actions key="actions" detail={detail} />
  return (
    <article class="detail">
      <Head detail={detail} query={query} />
      {isNarrow.value ? [targets, payload, actions] : [actions, targets, payload]}
      <Section title="Headers" count={detail.headers.length}>
        <Headers headers={detail.headers} label="Headers of the delivery" />
      </Section>
      <Section title="Signature">
        <ul class="sentences">
          {detail.proof.map((sentence) => (
            <li>
              <Visible text={sentence} />
            </li>
          ))}
        </ul>
      </Section>
    </article>
  )
}

/** What it is, in a few lines, and whether that is proved. */
function Head({ detail, query }: { readonly detail: DeliveryDetail; readonly query: ListQuery }) {
  const { n, receivedAt, size, deliveryId, editedFrom, older, newer, verdict, restored } = detail
  return (
    <header class="head">
      <div class="head-line">
        <a class="button button-quiet head-back" href={addressOf({ page: 'list', query })}>
          <Icon name="back" />
          Deliveries
        </a>
        <span class="head-n">#{n}</span>
        <span class="head-steps">
          <Step n={newer} query={query} text="Newer delivery" icon="back" />
          <Step n={older} query={query} text="Older delivery" icon="forward" />
        </span>
      </div>
      <h1 tabIndex={-1}>
        <EventName line={detail} /> <Badges line={detail} />
      </h1>
      <p class="head-subject">
        <Subject line={detail} />
      </p>
      <p class={restored?.unproved ? 'verdict mark mark-down' : 'verdict mark mark-succeeded'}>
        <Icon name={restored?.unproved ? 'ring' : 'check'} />
        <span>
          <Visible text={verdict} />
        </span>
      </p>
      <dl class="facts">
        <Fact name="Received">
          <Time at={receivedAt} />
        </Fact>
        <Fact name="Size">{formatSize(size)}</Fact>
        <Fact name="Delivery id">
          <code>
            <Visible text={deliveryId} />
          </code>
        </Fact>
        {editedFrom === undefined ? null : (
          <Fact name="Edited copy of">
            <a href={addressOf({ page: 'delivery', n: editedFrom, query })}>#{editedFrom}</a>
          </Fact>
        )}
      </dl>
    </header>
  )
}

interface StepProps {
  readonly n: number | null
  readonly query: ListQuery
  readonly text: string
  readonly icon: 'back' | 'forward'
}

function Step({ n, query, text, icon }: StepProps) {
  if (n === null) return null
  const label = `${text}: #${n}`
  return (
    <a
      class="button button-quiet"
      href={addressOf({ page: 'delivery', n, query })}
      title={label}
      aria-label={label}
    >
      <Icon name={icon} />
    </a>
  )
}

/** What can be done with it. What needs relay says why it cannot be done while relay is away. */
function Actions({ detail }: { readonly detail: DeliveryDetail }) {
  const path = `deliveries/${detail.n}`
  const isJson = detail.bodyKind === 'json' || detail.bodyKind === 'form'
  const copyText = (what: string, kind: string) => () => void copy(what, getText(`${path}/${kind}`))
  const download = whyNotRead.value === null
  return (
    <div class="actions" role="group" aria-label="Actions">
      <Button
        class="button button-main"
        icon="again"
        reason={whyNot}
        onClick={() => (dialog.value = { kind: 'forward', detail })}
      >
        Forward again
      </Button>
      <Button
        icon="pen"
        reason={isJson ? whyNot : 'Only a JSON payload can be edited.'}
        onClick={() => (dialog.value = { kind: 'edit', detail })}
      >
        Edit and send
      </Button>
      <Button icon="diff" reason={whyNotRead} onClick={() => (dialog.value = { kind: 'compare', detail })}>
        Compare with…
      </Button>
      <Button icon="copies" reason={whyNotRead} onClick={copyText('the curl command', 'curl')}>
        Copy as curl
      </Button>
      <Button icon="copies" reason={whyNotRead} onClick={copyText('the fixture', 'fixture')}>
        Copy fixture
      </Button>
      {download ? (
        <a class="button" href={`${BASE}/api/${path}/fixture`} download>
          <Icon name="saved" />
          Download fixture
        </a>
      ) : (
        <Button icon="saved" reason={whyNotRead} onClick={() => {}}>
          Download fixture
        </Button>
      )}
    </div>
  )
}

/** Each target with its status now, and its attempts. */
function Targets({ detail: { targets, routes, ignored } }: { readonly detail: DeliveryDetail }) {
  return (
    <Section title="Targets">
      {targets.length === 0 ? (
        <p class="quiet">
          {ignored !== undefined
            ? `Not forwarded: ${ignored}.`
            : routes.length === 0
              ? 'No route matches this delivery. Add one with relay serve --forward or --exec, then forward it.'
              : 'Not forwarded to any target.'}
        </p>
      ) : (
        <ul class="cards targets">
          {targets.map((target) => (
            <Target target={target} />
          ))}
        </ul>
      )}
    </Section>
  )
}

function Target({ target }: { readonly target: TargetDetail }) {
  const { name, label, match, reason, attempts } = target
  const longest = Math.max(...attempts.map(({ ms }) => ms), 1)
  const total = attempts.reduce((sum, { count }) => sum + count, 0)
  let last = total
  const numbered = attempts.toReversed().map((attempt) => {
    const first = last - attempt.count + 1
    const numbers = first === last ? `${first}` : `${first}–${last}`
    last = first - 1
    return { attempt, numbers }
  })
  return (
    <li class="card">
      <CardHead
        name={name}
        label={match === null ? label : `${match} → ${label}`}
        status={statusOf(target)}
      />
      {reason === undefined ? null : (
        <p class="quiet">
          <Visible text={reason} />
        </p>
      )}
      {attempts.length === 0 ? <p class="quiet">No attempt yet.</p> : null}
      <ol class="attempts" aria-label={`Attempts at ${name}, the newest first`}>
        {numbered.map(({ attempt, numbers }, i) => (
          <li key={attempt.at}>
            <Attempt
              attempt={attempt}
              numbers={numbers}
              part={attempts.length === 1 ? null : attempt.ms / longest}
              isNewest={i === 0}
            />
          </li>
        ))}
      </ol>
    </li>
  )
}

interface AttemptProps {
  readonly attempt: AttemptLine
  /** `2`, or `2–5` for several in a row. */
  readonly numbers: string
  /** How long it took, as a part of the slowest one; null where there is no other. */
  readonly part: number | null
  readonly isNewest: boolean
}

function Attempt({ attempt, numbers, part, isNewest }: AttemptProps) {
  const { at, outcome, status, ms, error, headers, answer, answerIsText } = attempt
  return (
    <details open={isNewest && !isNarrow.value && (answer !== '' || error !== null)}>
      <summary>
        <span class="attempt-n">
          <span class="sr-only">Attempt </span>
          {numbers}
        </span>
        {outcome === 'succeeded' ? (
          <span class="mark mark-succeeded">
            <Icon name="check" />
            <span class={status === null ? '' : 'sr-only'}>succeeded</span>
            {status}
          </span>
        ) : (
          <>
            <MarkWord status="failed" />
            {status}
          </>
        )}
        <span class="attempt-times">
          {part === null ? null : (
            <svg
              class="duration"
              viewBox="0 0 100 4"
              width="48"
              height="4"
              preserveAspectRatio="none"
              aria-hidden="true"
            >
              <rect class="duration-all" width="100" height="4" />
              <rect class="duration-own" width={Math.max(2, 100 * part)} height="4" />
            </svg>
          )}
          <span>{formatMs(ms)}</span>
          <Time at={at} />
        </span>
      </summary>
      <div class="attempt-body">
        {error === null ? null : (
          <p class="error-text">
            <Visible text={error} />
          </p>
        )}
        {status === null && answer === '' ? null : <Answer answer={answer} isText={answerIsText} />}
        {headers.length === 0 ? null : (
          <details class="answer-headers">
            <summary>{counted(headers.length, 'header')}</summary>
            <Headers headers={headers} label="Headers of the answer" />
          </details>
        )}
      </div>
    </details>
  )
}

function Answer({ answer, isText }: { readonly answer: string; readonly isText: boolean }) {
  if (answer === '') return <p class="quiet">An empty answer.</p>
  return (
    <>
      {isText ? null : <p class="quiet">Not text: bytes that are not UTF-8 are shown as �.</p>}
      <pre class="code answer" tabIndex={0} role="region" aria-label="Start of the answer">
        <Lines text={answer} />
      </pre>
    </>
  )
}
