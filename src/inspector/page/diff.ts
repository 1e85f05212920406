import { Change, presentableDiff } from '@codemirror/merge'
import { diffArrays } from 'diff'

/** Lines that are added and removed at most; two texts that differ by more have little in common. */
const MAX_EDITS = 4000
const MAX_MS = 1000

/** Characters of a changed block in which words are compared. */
const MAX_BLOCK = 4000

/**
 * How two texts differ, by lines and then by words: for `DiffConfig.override` of CodeMirror, whose own comparison gives up on two
 * payloads of 1 MB with a few dozen changes and calls all of it one change.
 */
export function lineDiff(before: string, after: string): readonly Change[] {
  if (before === after) return []
  const [left, right] = [linesOf(before), linesOf(after)]
  const [start, end] = [commonStart(left, right), commonEnd(left, right)]
  const from = left.slice(0, start).reduce((sum, line) => sum + line.length, 0)
  const [middleA, middleB] = [left.slice(start, left.length - end), right.slice(start, right.length - end)]
  const parts = diffArrays(middleA, middleB, { maxEditLength: MAX_EDITS, timeout: MAX_MS }) ?? [
    { removed: true, added: false, value: middleA },
    { removed: false, added: true, value: middleB },
  ]
  const changes: Change[] = []
  let [a, b] = [from, from]
  for (let i = 0; i < parts.length; i++) {
    const { removed, added, value = [] } = parts[i] ?? {}
    const text = value.join('')
    if (!removed && !added) [a, b] = [a + text.length, b + text.length]
    else {
      const next = parts[i + 1]
      const isPair = removed && next?.added
      const gone = removed ? text : ''
      const come = isPair ? next.value.join('') : added ? text : ''
      if (isPair) i++
      changes.push(...inBlock(gone, come, a, b))
      ;[a, b] = [a + gone.length, b + come.length]
    }
  }
  return changes
}

/** Lines with their ends, but for the last one. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

function commonStart(left: readonly string[], right: readonly string[]): number {
  const most = Math.min(left.length, right.length)
  let count = 0
  while (count < most && left[count] === right[count]) count++
  return count
}

/** Without what they have in common at their start. */
function commonEnd(left: readonly string[], right: readonly string[]): number {
  const most = Math.min(left.length, right.length) - commonStart(left, right)
  let count = 0
  while (count < most && left.at(-1 - count) === right.at(-1 - count)) count++
  return count
}

function inBlock(gone: string, come: string, a: number, b: number): readonly Change[] {
  const isShort = gone.length > 0 && come.length > 0 && gone.length + come.length <= MAX_BLOCK
  if (!isShort) return [new Change(a, a + gone.length, b, b + come.length)]
  return presentableDiff(gone, come).map(
    ({ fromA, toA, fromB, toB }) => new Change(a + fromA, a + toA, b + fromB, b + toB),
  )
}
