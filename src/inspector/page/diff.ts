import { Change, presentableDiff } from '@codemirror/merge'
import { diffArrays } from 'diff'

/**
 * Limits of the line comparison, in changed lines and milliseconds. Texts that differ by more have little in common.
 */
const LIMITS = { maxEditLength: 4000, timeout: 1000 }

/** Size of a changed block up to which words are compared. Characters. */
const MAX_BLOCK = 4000

/**
 * Compares two texts by lines and then by words, for `DiffConfig.override` of CodeMirror. Its own comparison gives up
 * on two payloads of 1 MB with a few dozen changes, and makes one change of everything.
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

/** Splits a text into lines with their line ends. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

/** Compares a block of lines with its replacement. */
function inBlock(gone: string, come: string, a: number, b: number): readonly Change[] {
  if (gone === come) return []
  const isShort = gone.length > 0 && come.length > 0 && gone.length + come.length <= MAX_BLOCK
  if (!isShort) return [new Change(a, a + gone.length, b, b + come.length)]
  return presentableDiff(gone, come).map(
    ({ fromA, toA, fromB, toB }) => new Change(a + fromA, a + toA, b + fromB, b + toB),
  )
}
