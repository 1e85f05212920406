import { EventEmitter } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Feed } from '../../../src/old/output/feed.js'
import type { Line } from '../../../src/old/output/line.js'
import { plain } from '../rig.js'

/** So many rows up, cleared, and the text after that. */
const CLEARING = new RegExp(String.raw`^(?:\r${'\u001b'}\[(\d+)A${'\u001b'}\[J)?(.*)$`, 's')

/** A terminal that knows what a feed writes: lines, and clearing so many rows above. */
class Terminal extends EventEmitter {
  columns = 20
  rows = 10
  readonly isTTY = true
  lines: string[] = []

  write(text: string): void {
    const [, up = '0', rest = ''] = CLEARING.exec(text) ?? []
    this.lines.splice(this.lines.length - Number(up))
    this.lines.push(...rest.split('\n').slice(0, -1))
  }
}

function open() {
  vi.useFakeTimers()
  const terminal = new Terminal()
  const feed = new Feed(terminal, plain, () => {})
  return {
    terminal,
    feed,
    /** What the terminal shows once everything is drawn. */
    lines: (): string[] => {
      vi.advanceTimersByTime(100)
      return terminal.lines
    },
  }
}

afterEach(() => void vi.useRealTimers())

describe('a feed', () => {
  it('completes lines in place, in the order in which they were added', () => {
    const { feed, lines } = open()
    let first: Line = '#1 waiting'
    const block = feed.add(() => [first], false)
    feed.add(() => ['#2 done', '   output'], true)
    expect(lines()).toEqual(['#1 waiting', '#2 done', '   output'])
    first = '#1 done'
    expect(block.redraw({ isFinal: true })).toBe(true)
    expect(lines()).toEqual(['#1 done', '#2 done', '   output'])
    expect(block.redraw({ isFinal: true })).toBe(false)
  })

  it('leaves alone what has left the last half of the screen, and says so', () => {
    const { feed, lines } = open()
    const texts = Array.from({ length: 7 }, (_, i) => `#${i}`)
    const blocks = texts.map((_, i) => feed.add(() => [texts[i] ?? ''], false))
    expect(lines()).toEqual(['#0', '#1', '#2', '#3', '#4', '#5', '#6'])
    texts.fill('done')
    expect(blocks.map((block) => block.redraw({ isFinal: true }))).toEqual(texts.map((_, i) => i >= 2))
    expect(lines()).toEqual(['#0', '#1', 'done', 'done', 'done', 'done', 'done'])
  })

  it('draws for the new size when that changes, over the rows that the lines take then', () => {
    const { terminal, feed, lines } = open()
    feed.add((width) => ['x'.repeat(width)], false)
    expect(lines()).toEqual(['x'.repeat(20)])
    // The terminal has broken the line in two.
    terminal.lines = ['x'.repeat(10), 'x'.repeat(10)]
    terminal.columns = 10
    terminal.emit('resize')
    expect(lines()).toEqual(['x'.repeat(10)])
  })

  it('draws what is pending when it ends', () => {
    const { terminal, feed } = open()
    feed.add(() => ['pending'], false)
    feed[Symbol.dispose]()
    expect({ lines: terminal.lines, listeners: terminal.listenerCount('resize') }).toEqual({
      lines: ['pending'],
      listeners: 0,
    })
  })
})
