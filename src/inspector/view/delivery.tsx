import { addressOf } from '../address.js'
import type { DeliveryDetail, ListQuery } from '../api.js'
import { Fact } from './fact.js'
import { exactTime, formatSize, saidTime } from './format.js'
import { Icon } from './icon.js'
import { describeMark, MarkWord, statusOf } from './mark.js'
import { Badges, EventName, Subject } from './row.js'
import { Visible } from './visible.js'

/** What a delivery is, in a few lines: the head of its page. */
export function DeliveryHead({
  detail,
  query,
  now,
}: {
  readonly detail: DeliveryDetail
  readonly query: ListQuery
  readonly now: number
}) {
  const { n, receivedAt, size, deliveryId, editedFrom, older, newer } = detail
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
      <h1 tabindex={-1}>
        <EventName line={detail} /> <Badges line={detail} />
      </h1>
      <p class="head-subject">
        <Subject line={detail} />
      </p>
      <dl class="facts">
        <Fact name="Received">
          <time datetime={new Date(receivedAt).toISOString()} title={exactTime(receivedAt)}>
            {saidTime(receivedAt, now)}
          </time>
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
  return (
    <a
      class="button button-quiet"
      href={addressOf({ page: 'delivery', n, query })}
      title={`${text}: #${n}`}
      aria-label={`${text}: #${n}`}
    >
      <Icon name={icon} />
    </a>
  )
}

/** Each target with its status now, and why. */
export function Targets({ detail: { targets, routes, ignored } }: { readonly detail: DeliveryDetail }) {
  if (targets.length === 0)
    return (
      <p class="quiet">
        {ignored !== undefined
          ? `Not forwarded: ${ignored}.`
          : routes.length === 0
            ? 'No route matches this delivery. Add one with relay serve --forward or --exec, then forward it.'
            : 'Not forwarded to any target.'}
      </p>
    )
  return (
    <ul class="targets">
      {targets.map((target) => (
        <li title={describeMark(target)}>
          <MarkWord status={statusOf(target)} />
          <span class="target-name">
            <Visible text={target.name} />
          </span>
          {target.reason === undefined ? null : (
            <span class="target-reason">
              <Visible text={target.reason} />
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}

/** Headers, or other pairs, in the order in which they came. */
export function Headers({
  headers,
  label,
}: {
  readonly headers: DeliveryDetail['headers']
  readonly label: string
}) {
  return (
    <table class="headers" aria-label={label}>
      <tbody>
        {headers.map(([name, value]) => (
          <tr>
            <th scope="row">
              <Visible text={name} />
            </th>
            <td>
              <Visible text={value} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** How the signature was proved, and how a tunnel's bytes were restored. */
export function Proof({ detail }: { readonly detail: DeliveryDetail }) {
  const { proof, restored, verifiedBy } = detail
  return (
    <>
      <p class="verdict">
        <span class="mark mark-succeeded">
          <Icon name="check" />
          <span>signature verified</span>
        </span>
        {verifiedBy === 'previous' ? <span class="quiet"> with the previous secret</span> : null}
      </p>
      <ul class="sentences">
        {proof.map((sentence) => (
          <li>
            <Visible text={sentence} />
          </li>
        ))}
        {restored === null ? null : (
          <li>
            Restored: <Visible text={restored.how} />
          </li>
        )}
      </ul>
    </>
  )
}
