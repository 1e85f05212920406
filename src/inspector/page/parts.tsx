import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { Header, TargetMark } from '../api.js'
import { counted, exactTime, formatMs, formatTime } from './format.js'
import { now } from './model.js'

/** The shapes of the icons, drawn in a box of 16 by 16. They mean nothing without the word next to them. */
const SHAPES = {
  check: 'M3 8.5l3.2 3.2L13 4.8',
  cross: 'M4 4l8 8M12 4l-8 8',
  ring: 'M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6',
  down: 'M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6M4.6 11.4l6.8-6.8',
  copies: 'M5.5 5.5h7.5v7.5H5.5zM10.5 5.5V3H3v7.5h2.5',
  pen: 'M3 13l.6-2.8L10.8 3l2.2 2.2L5.8 12.4zM9.4 4.4l2.2 2.2',
  again: 'M12.8 8a4.8 4.8 0 1 1-1.4-3.4L13 6.2M13 2.8v3.4H9.6',
  back: 'M9.5 3.5L5 8l4.5 4.5',
  forward: 'M6.5 3.5L11 8l-4.5 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  search: 'M7 3a4 4 0 1 0 0 8a4 4 0 1 0 0-8M10 10l3.4 3.4',
  tunnel: 'M2.5 13V9.5a5.5 5.5 0 0 1 11 0V13M5.8 13V9.8a2.2 2.2 0 0 1 4.4 0V13',
  saved: 'M8 2.5v7M5 6.8L8 9.8l3-3M3 13h10',
  diff: 'M4.5 3v7M2.6 8.2l1.9 1.9l1.9-1.9M11.5 13V6M9.6 7.8l1.9-1.9l1.9 1.9',
} as const

export type IconName = keyof typeof SHAPES

/** A decorative icon in the colour of its text. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  )
}

/** C0 and C1 controls, DEL, line ends and text direction: they would be invisible, or change how the text around them looks. */
export const HIDDEN = /([\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff])/gu

/** Text from outside in which every invisible character is a visible symbol. It never becomes markup. */
export function Visible({ text }: { readonly text: string }) {
  const parts = text.split(HIDDEN)
  if (parts.length === 1) return <>{text}</>
  // With a group in the pattern, each second part is a hidden character.
  return (
    <>{parts.map((part, i) => (i % 2 === 0 ? part : <span class="hidden-char">{symbolOf(part)}</span>))}</>
  )
}

/** The symbol of a control character (Unicode block Control Pictures), or its code: `\u{202e}`. */
export function symbolOf(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return code === 0x7f ? '␡' : `\\u{${code.toString(16)}}`
}

/** Text of several lines: line ends stay, and every other invisible character is a visible symbol. */
export function Lines({ text }: { readonly text: string }) {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
  return (
    <>
      {lines.map((line, i) => (
        <>
          {i === 0 ? '' : '\n'}
          <Visible text={line} />
        </>
      ))}
    </>
  )
}

/** An instant as people say it, exact to the millisecond in its title. */
export function Time({ at, class: name }: { readonly at: number; readonly class?: string }) {
  return (
    <time class={name} dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {formatTime(at, now.value)}
    </time>
  )
}

/** What the page calls a status: always a sign and a word, so that colour only repeats it. */
const MARKS = {
  succeeded: { icon: 'check', word: 'succeeded' },
  failed: { icon: 'cross', word: 'failed' },
  waiting: { icon: 'ring', word: 'waiting' },
  down: { icon: 'down', word: 'down' },
} as const satisfies Record<string, { icon: IconName; word: string }>

export function statusOf({ status, down }: TargetMark): keyof typeof MARKS {
  return down ? 'down' : status
}

/** One target in the list: sign, name, and the answer or the word. The rest is in its title. */
export function Mark({ target }: { readonly target: TargetMark }) {
  const status = statusOf(target)
  const { icon, word } = MARKS[status]
  const isAnswer = target.answer !== undefined && status === target.status
  return (
    <span class={`mark mark-${status}`} title={describeMark(target)}>
      <Icon name={icon} />
      <span class="mark-name">
        <Visible text={target.name} />
      </span>
      {isAnswer ? <span class="sr-only"> {word} </span> : null}
      <span class="mark-answer">{isAnswer ? target.answer : word}</span>
      <Tries target={target} />
    </span>
  )
}

/** How many attempts it took, if more than one. */
function Tries({ target: { tries, status } }: { readonly target: TargetMark }) {
  // Of one that waits, all attempts so far have failed.
  const count = status === 'waiting' ? tries : tries + 1
  if (tries === 0) return null
  return (
    <span class="tries">
      <span aria-hidden="true">×{count}</span>
      <span class="sr-only"> {counted(count, 'attempt')}</span>
    </span>
  )
}

/** A sign with a word, for headings and tables. */
export function MarkWord({
  status,
  word = MARKS[status].word,
}: {
  readonly status: keyof typeof MARKS
  readonly word?: string
}) {
  return (
    <span class={`mark mark-${status}`}>
      <Icon name={MARKS[status].icon} />
      <span>{word}</span>
    </span>
  )
}

/** `3000: failed, 502, 12 ms, 5 attempts. The target answered 502.` */
function describeMark(target: TargetMark): string {
  const { name, answer, ms, reason, tries } = target
  const parts = [
    MARKS[statusOf(target)].word,
    answer,
    ms === undefined ? undefined : formatMs(ms),
    tries === 0 ? undefined : `${counted(tries, 'attempt')} failed`,
  ]
  return `${name}: ${parts.filter((part) => part !== undefined).join(', ')}${reason ? `. ${reason}` : ''}`
}

/** The head of a card: what it is about, how that is, and where it leads. */
export function CardHead({
  name,
  label,
  status,
  word,
}: {
  readonly name: string
  readonly label?: string | null
  readonly status?: keyof typeof MARKS
  readonly word?: string
}) {
  return (
    <div class="card-head">
      <strong>
        <Visible text={name} />
      </strong>
      {label ? (
        <code>
          <Visible text={label} />
        </code>
      ) : null}
      {status === undefined ? null : <MarkWord status={status} {...(word !== undefined && { word })} />}
    </div>
  )
}

/** What stands where there is nothing to show: what that means, and what to do next. */
export function Empty({
  title,
  children,
}: {
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** A line of a list of facts (`dl`). */
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A part of a page with its heading, and what stands at the end of the heading's line. */
export function Section({
  title,
  count,
  tools,
  children,
}: {
  readonly title: string
  readonly count?: string | number
  readonly tools?: ComponentChildren
  readonly children: ComponentChildren
}) {
  const id = useId()
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>
          {title} {count === undefined ? null : <span class="section-count">{count}</span>}
        </h2>
        {tools}
      </div>
      {children}
    </section>
  )
}

/** Headers in the order in which they came. */
export function Headers({ headers, label }: { readonly headers: readonly Header[]; readonly label: string }) {
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

export interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick: () => void
  readonly icon?: IconName
  readonly class?: string
  /** Why it cannot be used now, if so: it stays in the order of Tab, and says the reason. */
  readonly reason?: ReadonlySignal<string | null> | string | null
  /** Whether it has the focus when its dialog opens. */
  readonly isFirst?: boolean
}

/** A button that says why it is off instead of vanishing from the keyboard's way. */
export function Button({ children, onClick, icon, class: name = 'button', reason, isFirst }: ButtonProps) {
  const id = useId()
  const why = typeof reason === 'object' && reason !== null ? reason.value : (reason ?? null)
  return (
    <>
      <button
        type="button"
        class={name}
        data-first={isFirst}
        title={why ?? undefined}
        aria-disabled={why === null ? undefined : 'true'}
        aria-describedby={why === null ? undefined : id}
        onClick={() => {
          if (why === null) onClick()
        }}
      >
        {icon ? <Icon name={icon} /> : null}
        {children}
      </button>
      {why === null ? null : (
        <span id={id} hidden>
          {why}
        </span>
      )}
    </>
  )
}
