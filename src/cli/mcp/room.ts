// How much a model reads. Encodings differ, and their tables have megabytes, so that tokens are bounded, not counted.

/** Least letters of a token in any text, such as a digest. */
const PER_TOKEN = 1.8
/** The same in a word that can be spoken: most have one token or two. */
const PER_WORD = 4
/** The same in a word of the trade, such as those of events. */
const PER_KNOWN_WORD = 7
const SPOKEN = /^[^aeiouy]{0,4}[aeiouy]{1,3}(?:[^aeiouy]{1,4}[aeiouy]{1,3})*[^aeiouy]{0,4}$/i
const DIGITS = 3
/** Tokens by which the parts of a text without words may be more than their length says. */
const RANDOM = 3
/** Tokens of a character that JSON escapes with six. */
const ESCAPED = 4

/** Bounds the tokens of a text in JSON, where a sign before a word is one token with it. */
export function tokensOfText(text: string): number {
  return tokensOfNamed(text, PER_WORD)
}

/** Bounds those of the name of an event or an action. */
export function tokensOfEvent(text: string): number {
  return tokensOfNamed(text, PER_KNOWN_WORD)
}

function tokensOfNamed(text: string, perWord: number): number {
  let [sum, isRandom] = [0, false]
  for (const [whole, word] of text.matchAll(
    /[ -/:-@[-`{-~]?(?<![a-z\d])([A-Z]?[a-z]+|[A-Z]+)(?![\da-z])|[a-z]+|[A-Z]+|\d+|[^]/gu,
  ))
    if (word !== undefined && SPOKEN.test(word)) sum += Math.ceil((word.length + 1) / perWord)
    else {
      isRandom ||= /^[a-z]/i.test(word ?? whole)
      sum += tokensOfRun(word ?? whole)
    }
  return sum + (isRandom ? RANDOM : 0)
}

function tokensOfRun(run: string): number {
  if (/^\d/.test(run)) return Math.ceil(run.length / DIGITS)
  if (/^[a-z]/i.test(run)) return Math.ceil(run.length / PER_TOKEN)
  if (run === '…') return CUT
  if (run === '\n' || run === '"' || run === '\\') return 2
  return /^\p{Cc}/u.test(run) ? ESCAPED : Buffer.byteLength(run)
}

/** Tokens of an ellipsis, which also parts the word before it. */
export const CUT = 2

/** Cuts a text to this many tokens, between characters, with an ellipsis in place of the rest. */
export function cutTo(text: string, room: number, tokensOf = tokensOfText): string {
  if (tokensOf(text) <= room) return text
  const chars = Array.from(text)
  let [from, to] = [0, chars.length]
  while (from < to) {
    const middle = Math.ceil((from + to) / 2)
    if (tokensOf(chars.slice(0, middle).join('')) <= room - CUT) from = middle
    else to = middle - 1
  }
  return `${chars.slice(0, from).join('')}…`
}

/** Part of the room of a text that is for its end. */
const FOR_END = 1 / 3

/**
 * Cuts a text to this many tokens, with an ellipsis in place of its middle: of an error, some languages write the message
 * first, others last.
 */
export function cutInside(text: string, room: number): string {
  if (tokensOfText(text) <= room) return text
  const start = cutTo(text, Math.floor(room * (1 - FOR_END)))
  const rest = Array.from(text.slice(start.length - '…'.length))
  let [from, to] = [0, rest.length]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    if (tokensOfText(start + rest.slice(middle).join('')) <= room) to = middle
    else from = middle + 1
  }
  return start + rest.slice(from).join('')
}
