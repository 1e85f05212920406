import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { Header, TargetMark } from '../api.js'
import { counted, exactTime, formatMs, formatTime } from './format.js'
import { notify, now } from './model.js'

/** Shapes of the icons, drawn in a box of 16 by 16. Each stands next to a word with its meaning. */
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
  send: 'M2.5 8h10M8.8 4.2L12.6 8l-3.8 3.8',
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

/**
 * Characters that are invisible or change the text around them: C0 and C1 controls, DEL, line ends and text direction.
 */
export const HIDDEN = /([\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff])/gu

export interface VisibleProps {
  readonly text: string | null | undefined
  /** Class of the element around it. Default: no element. */
  readonly class?: string
}

/** Text from outside, if any, with a visible symbol for every invisible character. It never becomes markup. */
export function Visible({ text, class: name }: VisibleProps) {
  if (text === null || text === undefined) return null
  // The pattern has a group, so every second part is a hidden character.
  const parts = text.split(HIDDEN)
  const visible = parts.map((part, i) =>
    i % 2 === 0 ? part : <span class="hidden-char">{symbolOf(part)}</span>,
  )
  return name === undefined ? <>{visible}</> : <span class={name}>{visible}</span>
}

/** A name or an address from outside. */
export function Code({ text }: { readonly text: string }) {
  return (
    <code>
      <Visible text={text} />
    </code>
  )
}

/** Formats the code of a hidden character: `\u{202e}`. Common fonts lack the symbols of control characters. */
export function symbolOf(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return `\\u{${code.toString(16)}}`
}

/** Start of a body. Line ends stay; every other invisible character becomes a visible symbol. */
export function Body({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {lines.map((line, i) => [i === 0 ? '' : '\n', <Visible text={line} />])}
    </pre>
  )
}

/** An instant in short form, with milliseconds in its title. */
export function Time({ at, class: name }: { readonly at: number; readonly class?: string }) {
  return (
    <time class={name} dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {formatTime(at, now.value)}
    </time>
  )
}

/** Names of statuses: always a sign and a word, so that colour only repeats them. */
const MARKS = {
  succeeded: { icon: 'check', word: 'succeeded' },
  failed: { icon: 'cross', word: 'failed' },
  waiting: { icon: 'ring', word: 'waiting' },
  down: { icon: 'down', word: 'down' },
} as const satisfies Record<string, { icon: IconName; word: string }>

export type Status = keyof typeof MARKS

export function markStatus({ status, down }: TargetMark): Status {
  return down ? 'down' : status
}

/** `waiting: behind #3, tried again at 12:04:15` */
export function waitWords({ text, nextTryAt }: NonNullable<TargetMark['waitsFor']>): string {
  return `waiting: ${text}${nextTryAt === undefined ? '' : ` at ${formatTime(nextTryAt, now.value)}`}`
}

/** One target in the list: sign, name, and the response or the status. The rest is in its title. */
export function Mark({ target }: { readonly target: TargetMark }) {
  const { name, answer, ms, reason, tries, waitsFor } = target
  const status = markStatus(target)
  const { icon } = MARKS[status]
  const word = waitsFor?.text ?? MARKS[status].word
  const isAnswer = answer !== undefined && status === target.status
  // While it waits, all attempts so far have failed.
  const attempts = target.status === 'waiting' ? tries : tries + 1
  const facts = [
    waitsFor ? waitWords(waitsFor) : word,
    answer,
    ms === undefined ? undefined : formatMs(ms),
    tries === 0 ? undefined : `${counted(tries, 'attempt')} failed`,
  ]
  const title = `${name}: ${facts.filter((fact) => fact !== undefined).join(', ')}${reason ? `. ${reason}` : ''}`
  return (
    <span class={`mark mark-${status}`} title={title}>
      <Icon name={icon} />
      <Visible class="mark-name" text={name} />
      {isAnswer ? <span class="sr-only"> {word} </span> : null}
      <span class={waitsFor && !isAnswer ? 'mark-waits' : 'mark-answer'}>{isAnswer ? answer : word}</span>
      {tries === 0 ? null : (
        <span class="tries">
          <span aria-hidden="true">×{attempts}</span>
          <span class="sr-only"> {counted(attempts, 'attempt')}</span>
        </span>
      )}
    </span>
  )
}

/** A status as its sign and word. */
export function MarkWord({ status, word }: { readonly status: Status; readonly word?: string | undefined }) {
  return (
    <span class={`mark mark-${status}`}>
      <Icon name={MARKS[status].icon} />
      <span>{word ?? MARKS[status].word}</span>
    </span>
  )
}

export interface CardProps {
  readonly name: string
  /** Address or command. */
  readonly label?: string | null
  readonly status?: Status
  /** Replacement for the status's own word. */
  readonly word?: string
  readonly children: ComponentChildren
}

/** A card with its name, status and address above its content. */
export function Card({ name, label, status, word, children }: CardProps) {
  return (
    <li class="card">
      <div class="card-head">
        <strong>
          <Visible text={name} />
        </strong>
        {label ? <Code text={label} /> : null}
        {status === undefined ? null : <MarkWord status={status} word={word} />}
      </div>
      {children}
    </li>
  )
}

export interface EmptyProps {
  readonly title: string
  readonly children?: ComponentChildren
}

/** Message for an empty place: what that means, and what to do next. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** A list of named facts. Null and undefined are left out. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(([name, fact]) =>
        fact === null || fact === undefined ? null : (
          <div>
            <dt>{name}</dt>
            <dd>{typeof fact === 'string' ? <Visible text={fact} /> : fact}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

export interface SectionProps {
  readonly title: string
  readonly count?: string | number | undefined
  /** Controls at the end of the heading's line. */
  readonly tools?: ComponentChildren
  readonly children: ComponentChildren
}

/** A part of a page with its heading. */
export function Section({ title, count, tools, children }: SectionProps) {
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

/** Headers in the order of the request. */
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

/** A list of sentences. */
export function Sentences({ sentences }: { readonly sentences: readonly string[] }) {
  return (
    <ul class="sentences">
      {sentences.map((sentence) => (
        <li>
          <Visible text={sentence} />
        </li>
      ))}
    </ul>
  )
}

export interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick?: () => void
  /** Address of a file to download, instead of `onClick`. */
  readonly download?: string
  readonly icon?: IconName
  readonly class?: string
  /**
   * Reason why the button is disabled. It then stays in the order of Tab, and shows the reason in its title and when it
   * is pressed.
   */
  readonly reason?: string | null
  /** True if it gets the focus when its dialog opens. */
  readonly isFirst?: boolean
}

/** A button that stays reachable by keyboard while it is disabled. */
export function Button({ children, onClick, download, icon, reason = null, isFirst, ...rest }: ButtonProps) {
  const name = rest.class ?? 'button'
  const content = [icon ? <Icon name={icon} /> : null, children]
  if (download !== undefined && reason === null)
    return (
      <a class={name} href={download} download>
        {content}
      </a>
    )
  return (
    <button
      type="button"
      class={name}
      data-first={isFirst}
      title={reason ?? undefined}
      aria-disabled={reason === null ? undefined : 'true'}
      onClick={() => {
        if (reason === null) onClick?.()
        else notify(reason, true)
      }}
    >
      {content}
    </button>
  )
}
