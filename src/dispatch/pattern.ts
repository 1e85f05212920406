import { createRequire } from 'node:module'

/**
 * Most instructions that a pattern may compile to. One that repeats nothing has about one for each character, so that
 * any of {@link parseCondition}'s length fits.
 */
const MAX_PROGRAM = 1000
/**
 * Characters of a value that a pattern is tested on: GitHub's longest comment. With a program of the size above, the
 * worst pattern found takes 0.7 s for as many (measured), and one without counted repetition below 20 ms.
 */
const MAX_TESTED = 65_536

type Library = Pick<typeof import('re2js'), 'RE2JS'>

let library: Library | undefined

/**
 * Compiles a regular expression in the syntax of RE2 (github.com/google/re2/wiki/Syntax), which has no lookaround and no
 * back-references. Node's own can take exponential time on a value that a sender chose, while everything else waits; this
 * takes time in proportion to the value. The library is loaded with the first pattern, in 6 ms.
 * @returns whether a text has a match in its first 65,536 characters
 * @throws Error if it is malformed or too large, with the reason in its message
 */
export function compilePattern(
  source: string,
  { ignoreCase }: { ignoreCase: boolean },
): (text: string) => boolean {
  library ??= load()
  const { RE2JS } = library
  // Names of groups and escapes of code points are also read as JavaScript writes them.
  const pattern = RE2JS.compile(RE2JS.translateRegExp(source), ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
  if (pattern.programSize() > MAX_PROGRAM) throw new Error('it is too large: repeat less often')
  return (text) => pattern.test(text.slice(0, MAX_TESTED))
}

function load(): Library {
  const loaded: Library = createRequire(import.meta.url)('re2js')
  return loaded
}
