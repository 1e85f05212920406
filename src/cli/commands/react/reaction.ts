import { RelayError } from '../../../base/errors.js'
import { REACTIONS, type Reaction } from '../../../codehost/host.js'

/** Other spellings of the reactions: the emoji that the code hosts show, and the names of the emoji. */
const ALIASES: Readonly<Record<Reaction, readonly string[]>> = {
  '+1': ['👍', 'thumbsup'],
  '-1': ['👎', 'thumbsdown'],
  laugh: ['😄', '😆', '😀', '😂', 'smile', 'laughing'],
  confused: ['😕'],
  heart: ['❤', '♥'],
  hooray: ['🎉', 'tada'],
  rocket: ['🚀'],
  eyes: ['👀'],
}

/** Variation selectors (text or emoji style) and skin tones, which change only the look of an emoji. */
const VARIANTS = /\p{Variation_Selector}|\p{Emoji_Modifier}/gu

/**
 * Parses a reaction: its name, with or without colons, or the emoji itself.
 * @throws RelayError `usage` that lists all reactions.
 */
export function parseReaction(text: string): Reaction {
  const plain = text.replaceAll(VARIANTS, '').toLowerCase()
  const name = /^:(.+):$/.exec(plain)?.[1] ?? plain
  const found = REACTIONS.find((reaction) => reaction === name || ALIASES[reaction].includes(name))
  if (found === undefined)
    throw new RelayError('usage', `${JSON.stringify(text)} is not a reaction. Give one of ${LIST}`)
  return found
}

const LIST = REACTIONS.map((reaction) => `${reaction} ${ALIASES[reaction][0]}`).join(', ')
