import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { AttemptLine, DeliveryDetail, ListQuery, Sent, TargetDetail } from '../api.js'
import { addressOf } from './address.js'
import { apiAddress, bodyOf, type ApiState, postJson, request, useApi, whyNot, whyNotRead } from './client.js'
import { command } from './command.js'
import { counted, formatMs, formatSize } from './format.js'
import { Badges, EventName, Subject } from './row.js'
import { copy, detail as shownDetail, dialog, focusHeading, isNarrow, messageFrom, notify } from './model.js'
import {
  Body,
  Button,
  Card,
  Code,
  Empty,
  Facts,
  Headers,
  Icon,
  MarkWord,
  Section,
  Sentences,
  markStatus,
  Time,
  Visible,
  waitWords,
} from './parts.js'
import { hasJson, Payload } from './payload.js'

export interface DeliveryProps {
  readonly detail: DeliveryDetail
  readonly query: ListQuery
}

/** One delivery, updated while it is shown. */
export function DeliveryPane({ n, query }: { readonly n: number; readonly query: ListQuery }) {
  useLayoutEffect(() => {
    // ApiState at once, before the kind of the body is known.
    void import('./code.js')
    bodyOf(n).catch(() => {})
  }, [n])
  const loaded = useApi<DeliveryDetail>(`deliveries/${n}`, (event) => {
    if (event.type === 'removed') return n < event.below
    return event.type === 'lines' && event.lines.some((line) => line.n === n)
  })
  const pane = useRef<HTMLElement>(null)
  const detail = loaded.value
  // A layout effect, so that it is set before a key can be pressed.
  useLayoutEffect(() => {
    shownDetail.value = detail
    return () => void (shownDetail.value = null)
  }, [detail])
  useEffect(() => {
    pane.current?.scrollTo({ top: 0 })
    if (!detail) return
    document.title = `#${n} ${nameOf(detail)} · relay`
    focusHeading(pane.current?.querySelector('h1'))
  }, [n, detail === null])
  return (
    <section class="pane pane-detail" aria-label={`Delivery #${n}`} ref={pane}>
      <NotLoaded loaded={loaded} n={n} query={query} />
      {detail ? <Detail key={n} detail={detail} query={query} /> : null}
    </section>
  )
}

export function nameOf({ event, action }: DeliveryDetail): string {
  return action === null ? event : `${event}.${action}`
}

export interface NotLoadedProps {
  readonly loaded: ApiState<unknown>
  readonly n: number
  readonly query: ListQuery
}

/** Message about a delivery that could not be loaded, or that retention removed while it was shown. */
export function NotLoaded({ loaded: { value, problem }, n, query }: NotLoadedProps) {
  if (!problem) return value === null ? <p class="loading quiet">Reading #{n} …</p> : null
  const { isMissing, message } = problem
  if (value === null)
    return (
      <>
        <h1 class="sr-only">#{n}</h1>
        <Empty title={isMissing ? `#${n} is not in the journal` : `#${n} could not be read`}>
          <p>{isMissing ? 'There is no entry with this number, or retention has removed it.' : message}</p>
          <p>
            <a href={addressOf({ page: 'list', query })}>Back to the deliveries</a>
          </p>
        </Empty>
      </>
    )
  return isMissing ? (
    <p class="banner banner-warn" role="status">
      Retention removed #{n} from the journal. What you see is what was read before.
    </p>
  ) : null
}

/** The parts of a delivery. Its actions come first, also on a phone, where a payload is many screens long. */
function Detail({ detail, query }: DeliveryProps) {
  return (
    <article class="detail">
      <Head detail={detail} query={query} />
      <Actions detail={detail} />
      <Targets detail={detail} />
      <Payload detail={detail} />
      <Section title="Headers" count={detail.headers.length}>
        <Headers headers={detail.headers} label="Headers of the delivery" />
      </Section>
      <Section title="Signature">
        <Sentences sentences={detail.proof} />
      </Section>
    </article>
  )
}

/** Short facts of a delivery, with the verdict about its signature. */
function Head({ detail, query }: DeliveryProps) {
  const { n, receivedAt, size, deliveryId, editedFrom, older, newer, verdict, restored } = detail
  const isDoubtful = detail.unproved || restored?.unproved
  const step = (to: number | null, text: string, icon: 'back' | 'forward') =>
    to === null ? null : (
      <a
        class="button button-quiet"
        href={addressOf({ page: 'delivery', n: to, query })}
        title={`${text}: #${to}`}
        aria-label={`${text}: #${to}`}
      >
        <Icon name={icon} />
      </a>
    )
  return (
    <header class="head">
      <div class="head-line">
        <a class="button button-quiet head-back" href={addressOf({ page: 'list', query })}>
          <Icon name="back" />
          Deliveries
        </a>
        <span class="head-n">#{n}</span>
        <span class="head-steps">
          {step(newer, 'Newer delivery', 'back')}
          {step(older, 'Older delivery', 'forward')}
        </span>
      </div>
      <h1 tabIndex={-1}>
        <EventName line={detail} /> <Badges line={detail} />
      </h1>
      <p class="head-subject">
        <Subject line={detail} />
      </p>
      <p class={isDoubtful ? 'verdict mark mark-down' : 'verdict mark mark-succeeded'}>
        <Icon name={isDoubtful ? 'ring' : 'check'} />
        <span>
          <Visible text={verdict} />
        </span>
      </p>
      <Facts
        facts={{
          Received: <Time at={receivedAt} />,
          Size: formatSize(size),
          'Delivery id': <Code text={deliveryId} />,
          Query: detail.query === undefined ? null : <Code text={detail.query} />,
          'Edited copy of': editedFrom && (
            <a href={addressOf({ page: 'delivery', n: editedFrom, query })}>#{editedFrom}</a>
          ),
        }}
      />
    </header>
  )
}

/** Gives up a waiting delivery. */
async function skip(n: number): Promise<void> {
  try {
    await postJson<Sent>(`deliveries/${n}/skip`, {})
    notify(`#${n} is not tried again`)
  } catch (error) {
    notify(messageFrom(error), true)
  }
}

/** Buttons of a delivery. Without relay, they give the reason why they are disabled. */
function Actions({ detail }: { readonly detail: DeliveryDetail }) {
  const path = `deliveries/${detail.n}`
  const copyText = (what: string, kind: string): void =>
    void copy(
      what,
      request(`${path}/${kind}`).then((response) => response.text()),
    )
  const open = (kind: 'forward' | 'edit' | 'compare') => () => {
    dialog.value = { kind, detail }
  }
  const whyNotEdit = hasJson(detail) ? whyNot.value : 'Only a JSON payload can be edited.'
  const away = whyNotRead.value
  return (
    <div class="actions" role="group" aria-label="Actions">
      <Button class="button button-main" icon="again" reason={whyNot.value} onClick={open('forward')}>
        Forward again
      </Button>
      {detail.targets.some(({ status }) => status === 'waiting') ? (
        <Button icon="close" reason={whyNot.value} onClick={() => void skip(detail.n)}>
          Stop trying
        </Button>
      ) : null}
      <Button icon="pen" reason={whyNotEdit} onClick={open('edit')}>
        Edit and send
      </Button>
      <Button icon="diff" reason={away} onClick={open('compare')}>
        Compare with…
      </Button>
      <Button icon="copies" reason={away} onClick={() => copyText('the curl command', 'curl')}>
        Copy as curl
      </Button>
      <Button icon="copies" reason={away} onClick={() => copyText('the fixture', 'fixture')}>
        Copy fixture
      </Button>
      <Button icon="saved" reason={away} download={apiAddress(`${path}/fixture`)}>
        Download fixture
      </Button>
    </div>
  )
}

/** Targets with their current status and attempts. */
function Targets({ detail: { targets, routes, ignored } }: { readonly detail: DeliveryDetail }) {
  const noRoute = `No route matches this delivery. Stop relay, start it again with ${command('serve --forward 3000')}, then forward it.`
  const whyNone = routes.length === 0 ? noRoute : 'Not forwarded to any target.'
  return (
    <Section title="Targets">
      {targets.length === 0 ? (
        <p class="quiet">{ignored === undefined ? whyNone : `Not forwarded: ${ignored}.`}</p>
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
  const { name, label, match, reason, attempts, waitsFor } = target
  const longest = attempts.length === 1 ? null : Math.max(...attempts.map(({ ms }) => ms), 1)
  let last = 0
  const numbered = attempts.map((attempt) => {
    const first = last + 1
    last += attempt.count
    return { attempt, numbers: first === last ? `${first}` : `${first}–${last}` }
  })
  return (
    <Card name={name} label={match === null ? label : `${match} → ${label}`} status={markStatus(target)}>
      {/^(?:answered|exit code) /.test(reason ?? '') ? null : <Visible class="quiet" text={reason} />}
      {waitsFor ? <Visible class="quiet" text={waitWords(waitsFor)} /> : null}
      {attempts.length === 0 ? <p class="quiet">No attempt yet.</p> : null}
      <ol class="attempts" aria-label={`Attempts at ${name}, the newest first`}>
        {numbered.toReversed().map(({ attempt, numbers }, i) => (
          <li key={attempt.at}>
            <Attempt attempt={attempt} numbers={numbers} longest={longest} isNewest={i === 0} />
          </li>
        ))}
      </ol>
    </Card>
  )
}

interface AttemptProps {
  readonly attempt: AttemptLine
  /** `2`, or `2–5` for several in a row. */
  readonly numbers: string
  /** Duration of the slowest attempt, in milliseconds. Null if there is only one. */
  readonly longest: number | null
  readonly isNewest: boolean
}

function Attempt({ attempt, numbers, longest, isNewest }: AttemptProps) {
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
          {longest === null ? null : <span class="duration" style={{ '--part': ms / longest }} />}
          <span>{formatMs(ms)}</span>
          <Time at={at} />
        </span>
      </summary>
      <div class="attempt-body">
        {status === null ? <Visible class="error-text" text={error} /> : null}
        {status !== null && answer === '' ? <p class="quiet">An empty answer.</p> : null}
        {answerIsText || answer === '' ? null : (
          <p class="quiet">Not text: bytes that are not UTF-8 are shown as �.</p>
        )}
        {answer === '' ? null : <Body text={answer} label="Start of the answer" />}
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
