import { stripVTControlCharacters } from 'node:util'
import { MAX_START } from '../../../base/start-of.js'
import { dim, type Line } from '../../output/line.js'
import { TIMED_INDENT } from '../../output/output.js'

/** Enough to see what a command did; `relay show` has the rest. */
const MAX_LINES = 8

/** What a command printed, for below the line of its delivery: `deploy.sh │ done`. */
export function outputLines(name: string, answer: Uint8Array): Line[] {
  const lines = stripVTControlCharacters(Buffer.from(answer).toString())
    .split('\n')
    // A progress display writes each state over the one before.
    .map((line) => line.trimEnd().split('\r').at(-1) ?? '')
  while (lines.at(-1) === '') lines.pop()
  const start: Line = [' '.repeat(TIMED_INDENT), dim(`${name} │ `)]
  const shown = lines.slice(0, MAX_LINES).map((line): Line => [start, line])
  const hidden = lines.length - shown.length
  const isCut = answer.length >= MAX_START
  if (hidden === 0 && !isCut) return shown
  return [...shown, [start, dim(isCut ? '… more' : `… ${hidden} more line${hidden === 1 ? '' : 's'}`)]]
}
