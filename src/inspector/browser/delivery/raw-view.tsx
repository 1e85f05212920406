import { useEffect, useMemo, useRef, useState } from 'hono/jsx/dom'
import { Visible } from '../../view/visible.js'
import { layOut, rowText } from '../model/raw-lines.js'
import { VirtualRows } from '../ui/virtual-rows.js'

/** Before the width is known, and at least: a row of a narrow phone. */
const MIN_COLUMNS = 24

/** Text in rows as wide as the page, so that a megabyte in one line is as smooth as any other. */
export function RawView({ text }: { readonly text: string }) {
  const probe = useRef<HTMLSpanElement>(null)
  const [columns, setColumns] = useState(MIN_COLUMNS)
  useEffect(() => {
    const character = probe.current
    const box = character?.parentElement
    if (!character || !box) return undefined
    const measure = (): void => {
      // The number of the line stands before it, in a column of six characters.
      const fitting = Math.floor((box.clientWidth * 10) / character.getBoundingClientRect().width) - 8
      setColumns(Math.max(MIN_COLUMNS, fitting))
    }
    measure()
    const resized = new ResizeObserver(measure)
    resized.observe(box)
    return () => resized.disconnect()
  }, [])
  const lines = useMemo(() => layOut(text, columns), [text, columns])
  return (
    <div class="code raw" tabindex={0} role="region" aria-labelledby="payload-title">
      <span class="raw-probe" ref={probe} aria-hidden="true">
        0000000000
      </span>
      <VirtualRows
        class="raw-rows"
        count={lines.starts.length}
        row={(index) => (
          <div class="raw-row" key={index}>
            <span class="raw-number" aria-hidden="true">
              {lines.numbers[index] === lines.numbers[index - 1] ? '' : lines.numbers[index]}
            </span>
            <Visible text={rowText(lines, index)} />
          </div>
        )}
      />
    </div>
  )
}
