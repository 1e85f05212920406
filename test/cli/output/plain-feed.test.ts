import { afterEach, expect, it, vi } from 'vitest'
import type { Line } from '../../../src/old/output/line.js'
import { PlainFeed } from '../../../src/old/output/plain-feed.js'
import { plain } from '../rig.js'

afterEach(() => void vi.useRealTimers())

it('prints lines once: when they are final, as they are after a second, or at the end', () => {
  vi.useFakeTimers()
  const said: string[] = []
  const feed = new PlainFeed({ messageWidth: 80, say: (line: Line) => void said.push(plain(line)) })
  feed.add((width) => [`final, ${width} columns`], true)
  let text = 'pending'
  const [soon, late] = [feed.add(() => [`soon ${text}`], false), feed.add(() => [`late ${text}`], false)]
  expect(said.splice(0)).toEqual(['final, 80 columns'])
  text = 'done'
  expect([soon.redraw({ isFinal: true }), soon.redraw({ isFinal: true })]).toEqual([true, false])
  text = 'retried'
  expect(late.redraw({ isFinal: false })).toBe(true)
  vi.advanceTimersByTime(1000)
  expect(late.redraw({ isFinal: true })).toBe(false)
  feed.add(() => ['at the end'], false)
  feed[Symbol.dispose]()
  vi.advanceTimersByTime(2000)
  expect(said).toEqual(['soon done', 'late retried', 'at the end'])
})
