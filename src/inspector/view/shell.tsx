import type { Child } from 'hono/jsx'
import { addressOf, type View } from '../address.js'

export interface ShellProps {
  readonly page: View['page']
  /** How many requests were refused; null where it is not known. */
  readonly refused: number | null
  /** What stands at the end of the bar: the state of the connection. */
  readonly end?: Child
  readonly children: Child
}

/** The frame of every page: the bar with the three places, and the content. */
export function Shell({ page, refused, end, children }: ShellProps) {
  const current = page === 'delivery' || page === 'compare' ? 'list' : page
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={addressOf({ page: 'list', query: {} })}>
          relay
        </a>
        <nav aria-label="Inspector">
          <Place view={{ page: 'list', query: {} }} text="Deliveries" current={current} />
          <Place view={{ page: 'refused' }} text="Refused" current={current} count={refused} />
          <Place view={{ page: 'state' }} text="State" current={current} />
        </nav>
        <div class="bar-end">{end}</div>
      </header>
      <main id="main" class={`main main-${page}`} tabindex={-1}>
        {children}
      </main>
    </>
  )
}

interface PlaceProps {
  readonly view: View
  readonly text: string
  readonly current: View['page']
  readonly count?: number | null
}

function Place({ view, text, current, count = null }: PlaceProps) {
  return (
    <a href={addressOf(view)} {...(view.page === current && { 'aria-current': 'page' })}>
      {text}
      {count ? <span class="count">{count}</span> : null}
    </a>
  )
}
