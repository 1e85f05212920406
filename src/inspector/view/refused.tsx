import { addressOf } from '../address.js'
import type { RefusedDetail, RefusedLine, RefusedPage } from '../api.js'
import type { RefusedKind } from '../../webhook/refused.js'
import { Headers } from './delivery.js'
import { Empty } from './empty.js'
import { counted, exactTime, formatSize, saidTime } from './format.js'
import { Icon } from './icon.js'
import { Lines } from './lines.js'
import { Visible } from './visible.js'

const KIND_WORDS: Readonly<Record<RefusedKind, string>> = {
  no_signature: 'no signature',
  invalid_signature: 'invalid signature',
  invalid_event: 'invalid event',
  too_large: 'too large',
  wrong_path: 'wrong path',
}

/** The requests that were refused, the newest first. */
export function RefusedList({
  refused: { refused, counts },
  openId,
  now,
}: {
  readonly refused: RefusedPage
  readonly openId?: number
  readonly now: number
}) {
  return (
    <section class="refused" aria-labelledby="refused-title">
      <h1 id="refused-title" tabindex={-1}>
        Refused requests
      </h1>
      <p class="quiet">
        Nothing here is proved to come from the code host, and none of it was forwarded. The last 100 since
        relay started.
      </p>
      <Counts counts={counts} />
      {refused.length === 0 ? <NoneRefused /> : null}
      <ol class="rows">
        {refused.map((line) => (
          <li key={line.id}>
            <RefusedRow line={line} isOpen={line.id === openId} now={now} />
          </li>
        ))}
      </ol>
    </section>
  )
}

function NoneRefused() {
  return (
    <Empty title="No request was refused">
      <p>
        When a signature does not match, or a request is malformed, it appears here with the reason and what
        to do.
      </p>
    </Empty>
  )
}

function Counts({ counts }: { readonly counts: RefusedPage['counts'] }) {
  const given = Object.entries(counts).flatMap(([kind, count]) =>
    isKind(kind) && count > 0 ? [[kind, count] as const] : [],
  )
  if (given.length === 0) return null
  return (
    <ul class="counts">
      {given.map(([kind, count]) => (
        <li>
          <strong>{count}</strong> {KIND_WORDS[kind]}
        </li>
      ))}
    </ul>
  )
}

function isKind(kind: string): kind is RefusedKind {
  return Object.hasOwn(KIND_WORDS, kind)
}

function RefusedRow({
  line: { id, at, event, status, via, size, kind, reason },
  isOpen,
  now,
}: {
  readonly line: RefusedLine
  readonly isOpen: boolean
  readonly now: number
}) {
  return (
    <a
      class="row row-refused"
      href={addressOf({ page: 'refused', id })}
      {...(isOpen && { 'aria-current': 'true' })}
    >
      <time class="row-time" datetime={new Date(at).toISOString()} title={exactTime(at)}>
        {saidTime(at, now)}
      </time>
      <span class="row-event">
        <span class="mark mark-failed">
          <Icon name="cross" />
          <span>{KIND_WORDS[kind]}</span>
        </span>
        <span class="badge">{status}</span>
        {via === 'tunnel' ? <span class="badge">tunnel</span> : null}
      </span>
      <span class="row-subject">
        <Visible text={event === null ? reason : `${event} · ${reason}`} />
      </span>
      <span class="row-size">{formatSize(size)}</span>
    </a>
  )
}

/** One refused request: why, and what to do. */
export function Refused({ detail, now }: { readonly detail: RefusedDetail; readonly now: number }) {
  const { kind, at, status, via, size, event, deliveryId, verdict, headers, body, isCut, reason } = detail
  return (
    <article class="detail" aria-labelledby="refused-head">
      <header class="head">
        <div class="head-line">
          <a class="button button-quiet head-back" href={addressOf({ page: 'refused' })}>
            <Icon name="back" />
            Refused
          </a>
          <span class="badge badge-warn">unproved</span>
        </div>
        <h1 id="refused-head" tabindex={-1}>
          Refused: {KIND_WORDS[kind]}
        </h1>
        <p class="head-subject">
          <Visible text={reason} />
        </p>
        <p class="quiet">
          Answered {status}, came by {via === 'http' ? 'HTTP' : 'the tunnel'} at{' '}
          <time datetime={new Date(at).toISOString()} title={exactTime(at)}>
            {saidTime(at, now)}
          </time>
          , {counted(size, 'byte')}. Claims to be {event === null ? 'no event' : <Visible text={event} />}
          {deliveryId === null ? null : (
            <>
              , delivery <Visible text={deliveryId} />
            </>
          )}
          .
        </p>
      </header>
      <section class="section" aria-labelledby="verdict-title">
        <h2 id="verdict-title">Why</h2>
        <ul class="sentences">
          {verdict.map((line) => (
            <li>
              <Visible text={line} />
            </li>
          ))}
        </ul>
      </section>
      <section class="section" aria-labelledby="refused-headers">
        <h2 id="refused-headers">Headers</h2>
        <Headers headers={headers} label="Headers of the request" />
      </section>
      <section class="section" aria-labelledby="refused-body">
        <h2 id="refused-body">Body{isCut ? ' (its start)' : ''}</h2>
        <pre class="code" tabindex={0} role="region" aria-label="Start of the body">
          <Lines text={body} />
        </pre>
      </section>
    </article>
  )
}
