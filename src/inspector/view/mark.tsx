import type { TargetMark } from '../api.js'
import { formatMs } from './format.js'
import { Icon, type IconName } from './icon.js'
import { Visible } from './visible.js'

/** What the page calls the status of a target: always a sign and a word, so that colour only repeats it. */
const MARKS = {
  succeeded: { icon: 'check', word: 'succeeded' },
  failed: { icon: 'cross', word: 'failed' },
  waiting: { icon: 'ring', word: 'waiting' },
  down: { icon: 'down', word: 'down' },
} as const satisfies Record<string, { icon: IconName; word: string }>

export function statusOf({ status, down }: TargetMark): keyof typeof MARKS {
  return down ? 'down' : status
}

/** The sign of one target in the list, with its name; the rest is in its title and for screen readers. */
export function Mark({ target }: { readonly target: TargetMark }) {
  const status = statusOf(target)
  const { icon, word } = MARKS[status]
  return (
    <span class={`mark mark-${status}`} title={describeMark(target)}>
      <Icon name={icon} />
      <span class="mark-name">
        <Visible text={target.name} />
      </span>
      {target.answer === undefined || status !== target.status ? (
        <span class="mark-word">{word}</span>
      ) : (
        <>
          <span class="sr-only"> {word} </span>
          <span class="mark-answer">{target.answer}</span>
        </>
      )}
    </span>
  )
}

/** The same with its word shown, for headings and tables. */
export function MarkWord({ status }: { readonly status: keyof typeof MARKS }) {
  return (
    <span class={`mark mark-${status}`}>
      <Icon name={MARKS[status].icon} />
      <span>{MARKS[status].word}</span>
    </span>
  )
}

/** `3000: failed, 502, 12 ms. The target answered 502.` */
export function describeMark(target: TargetMark): string {
  const { name, answer, ms, reason } = target
  const parts = [MARKS[statusOf(target)].word, answer, ms === undefined ? undefined : formatMs(ms)]
  return `${name}: ${parts.filter((part) => part !== undefined).join(', ')}${reason ? `. ${reason}` : ''}`
}
