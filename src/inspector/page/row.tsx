import type { DeliveryLine, ListQuery } from '../api.js'
import { addressOf } from './address.js'
import { counted, formatSize } from './format.js'
import { isNarrow } from './model.js'
import { Icon, Mark, markStatus, Time, Visible } from './parts.js'

interface LineProps {
  readonly line: Omit<DeliveryLine, 'targets'>
}

interface DeliveryRowProps {
  readonly line: DeliveryLine
  readonly query: ListQuery
  readonly isOpen: boolean
}

/** Order in which targets are shown if a row has no room for all. The others are counted. */
const ORDER = ['failed', 'down', 'waiting', 'succeeded'] as const

/** One delivery, as a link to it. */
export function DeliveryRow({ line, query, isOpen }: DeliveryRowProps) {
  const { n, receivedAt, size, targets, ignored } = line
  const ordered = ORDER.flatMap((status) => targets.filter((target) => markStatus(target) === status))
  const room = isNarrow.value ? 2 : 3
  const [marks, more] = targets.length > room ? [ordered.slice(0, room), ordered.slice(room)] : [targets, []]
  return (
    <a
      class="row"
      href={addressOf({ page: 'delivery', n, query })}
      data-n={n}
      aria-current={isOpen ? 'true' : undefined}
    >
      <span class="row-line">
        <span class="row-event">
          <EventName line={line} />
          <Badges line={line} />
        </span>
        <span class="row-n">#{n}</span>
        <Time class="row-time" at={receivedAt} />
      </span>
      <span class="row-line">
        <span class="row-subject">
          <Subject line={line} />
        </span>
        <span class="row-marks">
          {marks.map((target) => (
            <Mark key={target.name} target={target} />
          ))}
          {more.length === 0 ? null : (
            <span title={more.map((target) => `${target.name}: ${markStatus(target)}`).join('\n')}>
              +{more.length}
            </span>
          )}
          {targets.length > 0 ? null : <span class="mark mark-none">{ignored ?? 'no target'}</span>}
        </span>
        <span class="row-size">{formatSize(size)}</span>
      </span>
    </a>
  )
}

/** `pull_request.opened`, `stripe invoice.paid`: with source and action in a weaker tone. */
export function EventName({ line: { source, event, action } }: LineProps) {
  return (
    <span class="event">
      <Visible class="action" text={source && `${source} `} />
      <Visible text={event} />
      <Visible class="action" text={action && `.${action}`} />
    </span>
  )
}

/** `octo/demo #1` */
export function Subject({ line: { repo, subject } }: LineProps) {
  return (
    <>
      <Visible class="repo" text={repo} /> <Visible class="subject" text={subject} />
    </>
  )
}

export function Badges({ line: { duplicates, editedFrom, viaTunnel, unproved } }: LineProps) {
  return (
    <>
      {unproved ? <span class="badge badge-warn">unverified</span> : null}
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
