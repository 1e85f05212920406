import { useEffect, useRef } from 'preact/hooks'
import type { ListedKind, RefusedDetail, RefusedLine, RefusedPage } from '../api.js'
import { addressOf } from './address.js'
import { useApi } from './client.js'
import { formatCount, formatSize } from './format.js'
import { focusHeading } from './model.js'
import { Body, Code, Empty, Facts, Headers, Icon, Section, Sentences, Time, Visible } from './parts.js'

const KINDS: Readonly<Record<ListedKind, string>> = {
  no_signature: 'no well-formed signature',
  invalid_signature: 'invalid signature',
  invalid_event: 'invalid event',
  too_large: 'too large',
  wrong_path: 'wrong path',
  handshake: 'handshake',
  question: 'unknown question',
}

/** Refused requests, and the open one. */
export function Refused({ id }: { readonly id: number | undefined }) {
  const { value, problem } = useApi<RefusedPage>('refused', ({ type }) => type === 'refused')
  useEffect(() => {
    document.title = `${id === undefined ? 'Refused requests' : `Refused request ${id}`} · relay`
    if (id === undefined) focusHeading(document.getElementById('refused-title'))
  }, [id])
  return (
    <div class={id === undefined ? 'panes panes-list' : 'panes panes-detail'}>
      <div class="pane pane-list">
        {value ? <RefusedList page={value} openId={id} /> : null}
        {problem && !value ? <Empty title={problem.message} /> : null}
      </div>
      {id === undefined ? (
        <section class="pane pane-detail pane-nothing" aria-label="Refused request">
          <Empty title="Choose a request">
            <p>It shows why relay refused it and what to do, as relay verify does.</p>
          </Empty>
        </section>
      ) : (
        <RefusedRequest key={id} id={id} />
      )}
    </div>
  )
}

interface RefusedListProps {
  readonly page: RefusedPage
  readonly openId: number | undefined
}

function RefusedList({ page: { refused, counts }, openId }: RefusedListProps) {
  const given = new Map(Object.entries(counts))
  return (
    <section class="refused" aria-labelledby="refused-title">
      <h1 id="refused-title" tabIndex={-1}>
        Refused requests
      </h1>
      <p class="quiet">
        Not proved to come from their sender, and not forwarded; and handshakes, with which a sender asks an
        address. The last 100 since relay started.
      </p>
      {given.size === 0 ? null : (
        <ul class="counts">
          {Object.entries(KINDS).map(([kind, word]) =>
            given.has(kind) ? (
              <li>
                <strong>{formatCount(given.get(kind) ?? 0)}</strong> {word}
              </li>
            ) : null,
          )}
        </ul>
      )}
      {refused.length === 0 ? (
        <Empty title="No request was refused">
          <p>When a signature does not match, or a request is malformed, it appears here with the reason.</p>
        </Empty>
      ) : (
        <ol class="rows">
          {refused.map((line) => (
            <li key={line.id}>
              <RefusedRow line={line} isOpen={line.id === openId} />
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function RefusedRow({ line, isOpen }: { readonly line: RefusedLine; readonly isOpen: boolean }) {
  const { id, at, source, event, status, via, size, kind, reason } = line
  const claim = [source, event].filter(Boolean).join(' ')
  return (
    <a
      class="row row-refused"
      href={addressOf({ page: 'refused', id })}
      aria-current={isOpen ? 'true' : undefined}
    >
      <span class="row-line">
        <span class="row-event">
          <span class="event">{KINDS[kind]}</span>
          <span class="badge">{status}</span>
          {via === 'tunnel' ? <span class="badge">tunnel</span> : null}
        </span>
        <Time class="row-time" at={at} />
      </span>
      <span class="row-line">
        <Visible class="row-subject" text={claim === '' ? reason : `${claim} · ${reason}`} />
        <span class="row-size">{formatSize(size)}</span>
      </span>
    </a>
  )
}

/** One refused request, with the reason and advice. */
function RefusedRequest({ id }: { readonly id: number }) {
  const { value, problem } = useApi<RefusedDetail>(`refused/${id}`, () => false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (value) focusHeading(heading.current)
  }, [value])
  return (
    <section class="pane pane-detail" aria-label="Refused request">
      {problem && !value ? (
        <Empty title={problem.isMissing ? 'This request is no longer in the list' : 'It could not be read'}>
          <p>
            {problem.isMissing
              ? 'relay has the last 100 refused requests, until it is stopped.'
              : problem.message}
          </p>
          <p>
            <a href={addressOf({ page: 'refused' })}>Back to the refused requests</a>
          </p>
        </Empty>
      ) : null}
      {value ? (
        <article class="detail">
          <header class="head">
            <div class="head-line">
              <a class="button button-quiet head-back" href={addressOf({ page: 'refused' })}>
                <Icon name="back" />
                Refused
              </a>
              <span class="badge badge-warn">unproved</span>
            </div>
            <h1 tabIndex={-1} ref={heading}>
              {value.kind === 'handshake' ? '' : 'Refused: '}
              {KINDS[value.kind]}
            </h1>
            <Facts
              facts={{
                Received: [<Time at={value.at} />, value.via === 'tunnel' ? ', through the tunnel' : null],
                Answered: value.status,
                Size: formatSize(value.size),
                Source: value.source,
                'Claimed event': value.event,
                'Claimed delivery id': value.deliveryId && <Code text={value.deliveryId} />,
              }}
            />
          </header>
          <Section title="Why">
            <Sentences sentences={value.verdict} />
          </Section>
          <Section title="Headers" count={value.headers.length}>
            <Headers headers={value.headers} label="Headers of the request" />
          </Section>
          <Section title={value.isCut ? 'Body (its start)' : 'Body'}>
            <Body text={value.body} label="Start of the body" />
          </Section>
        </article>
      ) : null}
    </section>
  )
}
