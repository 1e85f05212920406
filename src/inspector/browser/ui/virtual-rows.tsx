import { type Child, useEffect, useLayoutEffect, useRef, useState } from 'hono/jsx/dom'
import { type RowWindow, scrollToRow, type Viewport, windowOf } from '../model/window-of.js'

export interface VirtualRowsProps {
  readonly count: number
  /** Renders one row; it has the height that its style sheet gives to `--row`. */
  readonly row: (index: number) => Child
  /** The element around the rows. */
  readonly tag?: 'ol' | 'div'
  readonly class: string
  readonly attributes?: Readonly<Record<string, string | number>>
  /** Called when rows near the end are rendered. */
  readonly onEnd?: () => void
  /** Called with how far the rows are scrolled up: 0 at the top. Pixels. */
  readonly onScroll?: (top: number) => void
  /** Called when the rows in view have been rendered. */
  readonly onRows?: () => void
  /** Gets what moves a row into view. */
  readonly handle?: { scrollTo?: (index: number) => void }
}

/** So close to the end the next rows are asked for. */
const END_ROWS = 20

const NONE: RowWindow = { from: 0, to: 30 }

/**
 * Rows of one height. Only those in view are in the document, so that a list of any length scrolls smoothly. They scroll
 * with the nearest element around them that has `data-scroller`.
 */
export function VirtualRows(props: VirtualRowsProps) {
  const { count, row, tag: Tag = 'div', attributes = {}, handle } = props
  const element = useRef<HTMLElement>(null)
  const latest = useRef(props)
  const [view, setView] = useState({ ...NONE, rowHeight: 0 })
  latest.current = props
  // Not a layout effect: those run before a new element is in the document.
  useEffect(() => {
    const found = element.current
    return found ? follow(found, latest, setView) : undefined
  }, [])
  useLayoutEffect(() => props.onRows?.())
  if (handle)
    handle.scrollTo = (index) => {
      const found = element.current
      if (found) scrollIntoView(found, index, rowHeightOf(found))
    }
  const from = Math.min(view.from, count)
  const to = Math.min(Math.max(view.to, from), count)
  const rows: Child[] = []
  for (let index = from; index < to; index++) rows.push(row(index))
  return (
    <Tag
      ref={element}
      class={`virtual ${props.class}`}
      style={{
        'padding-top': `${from * view.rowHeight}px`,
        'padding-bottom': `${(count - to) * view.rowHeight}px`,
      }}
      {...attributes}
    >
      {rows}
    </Tag>
  )
}

type View = RowWindow & { readonly rowHeight: number }

/** Renders other rows whenever the viewport, the number of rows or their height changes. */
function follow(
  element: HTMLElement,
  latest: { current: VirtualRowsProps | null },
  setView: (change: (view: View) => View) => void,
): () => void {
  const scroller = scrollerOf(element)
  let frame = 0
  const measure = (): void => {
    frame = 0
    const { count = 0, onEnd, onScroll } = latest.current ?? {}
    const rowHeight = rowHeightOf(element)
    const viewport = viewportOf(element, scroller)
    if (viewport.height === 0) return
    // Of a list without an end, so that rows that are added later are rendered at once.
    const { from, to } = windowOf({ count: Number.MAX_SAFE_INTEGER, rowHeight }, viewport)
    setView((view) =>
      view.from === from && view.to === to && view.rowHeight === rowHeight ? view : { from, to, rowHeight },
    )
    onScroll?.(scroller.scrollTop)
    if (to >= count - END_ROWS) onEnd?.()
  }
  const later = (): void => {
    frame ||= requestAnimationFrame(measure)
  }
  const resized = new ResizeObserver(later)
  resized.observe(scroller)
  // With its padding, which stands for the rows that are not rendered.
  resized.observe(element, { box: 'border-box' })
  scroller.addEventListener('scroll', later, { passive: true })
  measure()
  return () => {
    cancelAnimationFrame(frame)
    resized.disconnect()
    scroller.removeEventListener('scroll', later)
  }
}

function scrollerOf(element: HTMLElement): HTMLElement {
  return element.closest<HTMLElement>('[data-scroller]') ?? document.documentElement
}

function viewportOf(element: HTMLElement, scroller: HTMLElement): Viewport {
  const top = scroller.getBoundingClientRect().top - element.getBoundingClientRect().top
  return { top, height: scroller.clientHeight }
}

/** The height that the style sheet gives to `--row`, in pixels: `1rem` and the like are resolved by a property that uses it. */
function rowHeightOf(element: HTMLElement): number {
  return Number.parseFloat(getComputedStyle(element).scrollMarginTop) || 0
}

function scrollIntoView(element: HTMLElement, index: number, rowHeight: number): void {
  const scroller = scrollerOf(element)
  // What stays at the top of the scroller covers rows.
  const covered = Number.parseFloat(getComputedStyle(scroller).scrollPaddingTop) || 0
  const { top, height } = viewportOf(element, scroller)
  scroller.scrollTop += scrollToRow(index, rowHeight, { top: top + covered, height: height - covered })
}
