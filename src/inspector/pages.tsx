import { addressOf, BASE, formatQuery, isFiltered, type View } from './address.js'
import type {
  DeliveryDetail,
  DeliveryPage,
  InstanceState,
  ListQuery,
  RefusedDetail,
  RefusedPage,
  Timeline,
} from './api.js'
import { type AssetPaths, renderDocument } from './document.js'
import { Attempts } from './view/attempts.js'
import { DeliveryHead, Headers, Proof, Targets } from './view/delivery.js'
import { Empty, NoDeliveries, NothingMatches } from './view/empty.js'
import { FilterForm } from './view/filters.js'
import { Lines } from './view/lines.js'
import { Refused, RefusedList } from './view/refused.js'
import { Row } from './view/row.js'
import { Shell } from './view/shell.js'
import { State } from './view/state.js'
import { describeMinutes, TimelineChart, TimelineTicks } from './view/timeline.js'

/** Longer payloads are cut on the pages for browsers without a script: characters. */
const MAX_PLAIN_BODY = 262_144

/** What a page shows, read from the journal and the instance. */
export type Content =
  | {
      readonly page: 'list'
      readonly query: ListQuery
      readonly deliveries: DeliveryPage
      readonly timeline: Timeline
    }
  | { readonly page: 'delivery'; readonly query: ListQuery; readonly detail: DeliveryDetail }
  | {
      readonly page: 'compare'
      readonly query: ListQuery
      readonly detail: DeliveryDetail
      readonly other: DeliveryDetail
    }
  | { readonly page: 'refused'; readonly refused: RefusedPage; readonly detail?: RefusedDetail }
  | { readonly page: 'state'; readonly state: InstanceState }
  | { readonly page: 'missing'; readonly message: string }

/**
 * A page of the inspector as HTML. It can be read without a script; the script, where there is one, takes its place. All text is
 * escaped by hono/jsx, and there is no inline script or style.
 */
export function renderPage(content: Content, assets: AssetPaths, now: number): Promise<string> {
  const page: View['page'] = content.page === 'missing' ? 'list' : content.page
  const refused = content.page === 'refused' ? sum(Object.values(content.refused.counts)) : null
  const body = (
    <div id="app">
      <Shell page={page} refused={refused}>
        <Body content={content} now={now} />
      </Shell>
    </div>
  )
  return renderDocument(titleOf(content), body, {
    style: assets.path('style.css'),
    script: assets.path('app.js'),
  })
}

function titleOf(content: Content): string {
  if (content.page === 'delivery') return `#${content.detail.n} ${eventName(content.detail)}`
  if (content.page === 'compare') return `#${content.detail.n} and #${content.other.n} compared`
  if (content.page === 'refused')
    return content.detail ? `Refused request ${content.detail.id}` : 'Refused requests'
  return content.page === 'state' ? 'State' : content.page === 'list' ? 'Deliveries' : 'Not found'
}

function eventName({ event, action }: DeliveryDetail): string {
  return action === null ? event : `${event}.${action}`
}

function Body({ content, now }: { readonly content: Content; readonly now: number }) {
  if (content.page === 'list') return <List content={content} now={now} />
  if (content.page === 'delivery') return <Delivery detail={content.detail} query={content.query} now={now} />
  if (content.page === 'state') return <State state={content.state} now={now} />
  if (content.page === 'refused') {
    if (content.detail) return <Refused detail={content.detail} now={now} />
    return <RefusedList refused={content.refused} now={now} />
  }
  if (content.page === 'missing')
    return (
      <Empty title={content.message}>
        <p>
          <a href={addressOf({ page: 'list', query: {} })}>See all deliveries</a>
        </p>
      </Empty>
    )
  return (
    <div class="plain-compare">
      <Delivery detail={content.detail} query={content.query} now={now} />
      <Delivery detail={content.other} query={content.query} now={now} />
    </div>
  )
}

function List({ content, now }: { readonly content: Content & { page: 'list' }; readonly now: number }) {
  const { query, deliveries, timeline } = content
  const { next, stopped } = deliveries
  const before = next ?? stopped?.before
  return (
    <section class="pane pane-list" aria-label="Deliveries">
      <h1 class="sr-only">Deliveries</h1>
      <div class="tools">
        <div class="strip" role="img" aria-label={describeMinutes(timeline)}>
          <TimelineChart timeline={timeline} />
          <TimelineTicks timeline={timeline} />
        </div>
        <FilterForm query={query} />
      </div>
      {deliveries.deliveries.length > 0 ? null : isFiltered(query) ? <NothingMatches /> : <NoDeliveries />}
      <ol class="rows">
        {deliveries.deliveries.map((line) => (
          <li>
            <Row line={line} query={query} now={now} />
          </li>
        ))}
      </ol>
      {before === undefined ? null : (
        <p class="more">
          <a class="button" href={`${BASE}/${formatQuery({ ...query, before: String(before) })}`}>
            Older deliveries
          </a>
        </p>
      )}
    </section>
  )
}

function Delivery({
  detail,
  query,
  now,
}: {
  readonly detail: DeliveryDetail
  readonly query: ListQuery
  readonly now: number
}) {
  const { attempts, headers, body, n } = detail
  return (
    <article class="detail">
      <DeliveryHead detail={detail} query={query} now={now} />
      <section class="section">
        <h2>Targets</h2>
        <Targets detail={detail} />
        <Attempts attempts={attempts} now={now} />
      </section>
      <section class="section">
        <h2>Payload</h2>
        <PlainBody body={body} address={`${BASE}/api/deliveries/${n}/body`} />
      </section>
      <section class="section">
        <h2>Headers</h2>
        <Headers headers={headers} label="Headers of the delivery" />
      </section>
      <section class="section">
        <h2>Signature</h2>
        <Proof detail={detail} />
      </section>
    </article>
  )
}

function PlainBody({ body, address }: { readonly body: string | null; readonly address: string }) {
  const isCut = body !== null && body.length > MAX_PLAIN_BODY
  return (
    <>
      {body === null || isCut ? (
        <p class="quiet">
          {body === null ? 'Not text.' : 'Only its start is shown.'}{' '}
          <a href={address}>Download the exact bytes</a>
        </p>
      ) : null}
      {body === null ? null : (
        <pre class="code code-wrap" tabindex={0} role="region" aria-label="Payload">
          <Lines text={body.slice(0, MAX_PLAIN_BODY)} />
        </pre>
      )}
    </>
  )
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
