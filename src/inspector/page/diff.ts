import { Change, presentableDiff } from '@codemirror/merge'
import { diffArrays } from 'diff'

/** Lines that are added and removed at most, and time: two texts that differ by more have little in common. */
const LIMITS = { maxEditLength: 4000, timeout: 1000 }

/** Characters of a changed block in which words are compared. */
const MAX_BLOCK = 4000

/**
 * How two texts differ, by lines and then by words: for `DiffConfig.override` of CodeMirror, whose own comparison gives up on two
 * payloads of 1 MB with a few dozen changes and calls all of it one change.
 */
export function lineDiff(before: string, after: string): readonly Change[] {
  if (before === after) return []
  const [left, right] = [linesOf(before), linesOf(after)]
  const parts = diffArrays(left, right, LIMITS) ?? [
    { removed: true, added: false, value: left },
    { removed: false, added: true, value: right },
  ]
  const changes: Change[] = []
  let [a, b, gone, come] = [0, 0, '', '']
  const endBlock = (): void => {
    changes.push(...inBlock(gone, come, a, b))
    ;[a, b, gone, come] = [a + gone.length, b + come.length, '', '']
  }
  for (const { removed, added, value } of parts) {
    const text = value.join('')
    if (removed) gone += text
    else if (added) come += text
    else {
      endBlock()
      ;[a, b] = [a + text.length, b + text.length]
    }
  }
  endBlock()
  return changes
}

/** Lines with their ends, but for the last one. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

/** The changes of a block of lines that takes the place of another. */
function inBlock(gone: string, come: string, a: number, b: number): readonly Change[] {
  if (gone === come) return []
  const isShort = gone.length > 0 && come.length > 0 && gone.length + come.length <= MAX_BLOCK
  if (!isShort) return [new Change(a, a + gone.length, b, b + come.length)]
  return presentableDiff(gone, come).map(
    ({ fromA, toA, fromB, toB }) => new Change(a + fromA, a + toA, b + fromB, b + toB),
  )
}
