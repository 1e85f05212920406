import { Outside } from '../output/outside.js'
import type { Note } from './notes.js'

// Translates messages of commands for tools. Commands address a person at a shell; a model has arguments in place of flags.
// Nothing else translates them.

/** Begins the reason why `--serve` could not start. All of it is for the person who has set up the client. */
export const NOT_STARTED = 'With --serve, as the client is set up, no relay could start.'

/** The end of a command line: the profile that it may name. */
const PROFILE = String.raw`(?: --profile \S+)?`

/** Command lines with a tool that does the same. All others are for a person, or for a model that has a shell. */
const LINES: readonly (readonly [line: string, tool: string])[] = [
  ['trigger --list --source (\\S+?)', 'trigger_delivery with list: true and source: "$1"'],
  ['trigger --list', 'trigger_delivery with list: true'],
  ['trigger --source (\\S+?) --body <file>', 'trigger_delivery with source: "$1" and a body'],
  ['log --refused', 'list_deliveries with refused: true'],
  ['show refused:(\\d+)', 'explain_refused with id: $1'],
  ['verify refused:(\\d+)', 'explain_refused with id: $1'],
  ['show <n>', 'show_delivery'],
  ['show (\\d+|last)(?: --body)?', 'show_delivery with entry: $1'],
  ['replay (\\d+|last)', 'replay_delivery with entry: $1'],
  ['skip <n>', 'skip_delivery'],
  ['skip (\\d+|last)', 'skip_delivery with entry: $1'],
  ['routes test (\\d+|last)', 'show_routes with entry: $1'],
  ['log', 'list_deliveries'],
]
const TOOLS = LINES.map(
  ([line, tool]) => [new RegExp(`\\brelay ${line}${PROFILE}(?=[\\s.,;:)]|$)`, 'g'), tool] as const,
)

/** A command line that stays, up to the end of its part of the sentence. */
const COMMAND = /\brelay [a-z]/
/** A flag. One in quotes is what the call gave. */
const FLAG = /(?<!["'\w-])--([a-z][a-z-]*)/g
/** Ends of the parts of a sentence. */
const PARTS = /(?<=[.;,:])\s+/

/**
 * Rewrites a message for tools and arguments. If no argument corresponds to a flag, the part of the sentence about that
 * flag is left out.
 * @param names arguments of the tool
 */
export function forAgent(text: string, names: readonly string[]): string {
  const lines = text.split('\n').map((line) => {
    if (line.startsWith(NOT_STARTED)) return line
    const renamed = TOOLS.reduce((all, [pattern, tool]) => all.replaceAll(pattern, tool), line)
    if (!renamed.includes('--')) return renamed
    const parts: string[] = []
    for (const part of renamed.split(PARTS)) {
      const isOffered = [...part.matchAll(FLAG)].every(([, flag = '']) => names.includes(camelCase(flag)))
      if (COMMAND.test(part)) parts.push(part)
      else if (isOffered) parts.push(part.replaceAll(FLAG, (_, flag: string) => camelCase(flag)))
      // The sentence then ends here.
      else if (part.endsWith('.')) parts.push((parts.pop() ?? '').replace(/[;,:]$/, '.'))
    }
    return parts.join(' ').replace(/[;,:]$/, '')
  })
  return lines.join('\n')
}

/** {@link forAgent} for a note. */
export function noteForAgent(note: Note, names: readonly string[]): Note {
  if (typeof note === 'string') return forAgent(note, names)
  return typeof note.value === 'string' ? new Outside(forAgent(note.value, names)) : note
}

function camelCase(flag: string): string {
  return flag.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
