import { tokens } from '../json/text.js'

export interface ParseOptions {
  /** Gives integers of more than 15 digits as strings: numbers would round them. */
  readonly exactIntegers?: boolean | undefined
}

/**
 * Parses `text` as JSON; undefined if it is not JSON. Of several documents, one per line, the last one counts: Gitea 1.15 answers
 * a merge conflict with two, the second being the error.
 */
export function parseJson(text: string, options: ParseOptions = {}): unknown {
  return parsed(text, options) ?? parsed(text.trimEnd().split('\n').at(-1) ?? '', options)
}

function parsed(text: string, { exactIntegers = false }: ParseOptions): unknown {
  try {
    return JSON.parse(exactIntegers ? quoteLongIntegers(text) : text)
  } catch {
    return undefined
  }
}

/** Digits of the largest integer that every number holds exactly, less one. */
const EXACT_DIGITS = 15

function quoteLongIntegers(text: string): string {
  let quoted = ''
  let from = 0
  for (const { start, end } of tokens(text)) {
    if (end - start <= EXACT_DIGITS || !/^\d+$/.test(text.slice(start, end))) continue
    quoted += `${text.slice(from, start)}"${text.slice(start, end)}"`
    from = end
  }
  return quoted + text.slice(from)
}
