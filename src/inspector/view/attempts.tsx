import type { AttemptLine, DeliveryDetail } from '../api.js'
import { Headers } from './delivery.js'
import { counted, exactTime, formatMs, saidTime } from './format.js'
import { Icon } from './icon.js'
import { Lines } from './lines.js'
import { Visible } from './visible.js'

/** Each attempt, the newest first, with what the target answered. */
export function Attempts({
  attempts,
  now,
}: {
  readonly attempts: DeliveryDetail['attempts']
  readonly now: number
}) {
  if (attempts.length === 0) return <p class="quiet">No attempt yet.</p>
  const longest = Math.max(...attempts.map(({ ms }) => ms), 1)
  return (
    <ol class="attempts">
      {attempts.toReversed().map((attempt, i) => (
        <li>
          <Attempt
            attempt={attempt}
            longest={longest}
            isNewest={i === 0}
            isOnly={attempts.length === 1}
            now={now}
          />
        </li>
      ))}
    </ol>
  )
}

interface AttemptProps {
  readonly attempt: AttemptLine
  /** The duration of the slowest of them, in milliseconds. */
  readonly longest: number
  readonly isNewest: boolean
  readonly isOnly: boolean
  readonly now: number
}

function Attempt({ attempt, longest, isNewest, isOnly, now }: AttemptProps) {
  const { at, target, outcome, status, ms, count, error, headers, answer, answerIsText } = attempt
  const isGood = outcome === 'succeeded'
  return (
    <details open={isNewest && (answer !== '' || error !== null)}>
      <summary>
        <span class={`mark mark-${isGood ? 'succeeded' : 'failed'}`}>
          <Icon name={isGood ? 'check' : 'cross'} />
          <span>{outcome}</span>
        </span>
        <span class="attempt-status">{status ?? ''}</span>
        <span class="attempt-target">
          <Visible text={target} />
        </span>
        {count > 1 ? <span class="badge">{counted(count, 'attempt')}</span> : null}
        <span class="attempt-times">
          <span class="attempt-took">
            {isOnly ? null : <Duration ms={ms} longest={longest} />}
            {formatMs(ms)}
          </span>
          <time datetime={new Date(at).toISOString()} title={exactTime(at)}>
            {saidTime(at, now)}
          </time>
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
  if (answer === '') return <p class="quiet">Nothing more: an empty answer.</p>
  return (
    <>
      {isText ? null : <p class="quiet">Not text: bytes that are not UTF-8 are shown as �.</p>}
      <pre class="code answer" tabindex={0} role="region" aria-label="Start of the answer">
        <Lines text={answer} />
      </pre>
    </>
  )
}

/** A bar as long as the attempt took, next to the slowest. */
function Duration({ ms, longest }: { readonly ms: number; readonly longest: number }) {
  return (
    <svg
      class="duration"
      viewBox="0 0 100 4"
      width="48"
      height="4"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect class="duration-all" width="100" height="4" />
      <rect class="duration-own" width={Math.max(2, (100 * ms) / longest)} height="4" />
    </svg>
  )
}
