import { addressOf } from '../address.js'
import type { DeliveryLine, ListQuery } from '../api.js'
import { counted, exactTime, formatSize, saidTime } from './format.js'
import { Icon } from './icon.js'
import { Mark } from './mark.js'
import { Visible } from './visible.js'

/** As many marks as a line has room for; the rest is counted. */
const MAX_MARKS = 3

export interface RowProps {
  readonly line: DeliveryLine
  readonly query: ListQuery
  readonly now: number
  readonly isOpen?: boolean
}

/** One delivery of the list: a link to it. */
export function Row({ line, query, now, isOpen = false }: RowProps) {
  const { n, receivedAt, size } = line
  return (
    <a
      class="row"
      href={addressOf({ page: 'delivery', n, query })}
      data-n={n}
      {...(isOpen && { 'aria-current': 'true' })}
    >
      <time class="row-time" datetime={new Date(receivedAt).toISOString()} title={exactTime(receivedAt)}>
        {saidTime(receivedAt, now)}
      </time>
      <span class="row-event">
        <EventName line={line} />
        <Badges line={line} />
      </span>
      <span class="row-subject">
        <Subject line={line} />
      </span>
      <span class="row-marks">
        <Marks line={line} />
      </span>
      <span class="row-size">{formatSize(size)}</span>
    </a>
  )
}

/** `pull_request.opened`: the action in a weaker tone. */
export function EventName({ line }: { readonly line: Pick<DeliveryLine, 'event' | 'action'> }) {
  return (
    <span class="event">
      <Visible text={line.event} />
      {line.action === null ? null : (
        <span class="action">
          .<Visible text={line.action} />
        </span>
      )}
    </span>
  )
}

/** `octo/demo #1` */
export function Subject({ line: { repo, subject } }: { readonly line: DeliveryLine }) {
  return (
    <>
      {repo === null ? null : <Visible text={repo} />}
      {subject === null ? null : (
        <span class="subject">
          {' '}
          <Visible text={subject} />
        </span>
      )}
    </>
  )
}

export function Badges({ line: { duplicates, editedFrom, viaTunnel } }: { readonly line: DeliveryLine }) {
  return (
    <>
      {duplicates === 0 ? null : (
        <span class="badge" title={`Arrived again ${counted(duplicates, 'time')}`}>
          <Icon name="copies" />
          <span class="sr-only">arrived again, times: </span>
          {duplicates}
        </span>
      )}
      {editedFrom === undefined ? null : (
        <span class="badge" title={`Edited copy of #${editedFrom}`}>
          <Icon name="pen" />
          edited
        </span>
      )}
      {viaTunnel ? (
        <span class="badge" title="Came through the tunnel">
          <Icon name="tunnel" />
          <span class="sr-only">through the tunnel</span>
        </span>
      ) : null}
    </>
  )
}

function Marks({ line: { targets, ignored } }: { readonly line: DeliveryLine }) {
  const more = targets.length - MAX_MARKS
  if (targets.length === 0)
    return (
      <span class="mark mark-none" title={ignored}>
        {ignored === undefined ? 'no target' : 'ignored'}
      </span>
    )
  return (
    <>
      {targets.slice(0, MAX_MARKS).map((target) => (
        <Mark key={target.name} target={target} />
      ))}
      {more > 0 ? <span class="mark mark-none">+{more}</span> : null}
    </>
  )
}
