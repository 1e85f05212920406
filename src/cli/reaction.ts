import { RelayError } from '../base/errors.js'
import { REACTIONS, type Reaction } from '../providers/provider.js'

/** How else the reactions are written: the emoji the code hosts show, and the emoji's own names. */
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

/** Variation selectors (text or emoji style) and skin tones: they change how a sign looks, not what it says. */
const LOOKS = /\p{Variation_Selector}|\p{Emoji_Modifier}/gu

/**
 * Reads a reaction: its name, with or without colons, or the emoji itself.
 * @throws RelayError `usage` that lists them all.
 */
export function parseReaction(text: string): Reaction {
  const plain = text.replaceAll(LOOKS, '').toLowerCase()
  const name = /^:(.+):$/.exec(plain)?.[1] ?? plain
  const found = REACTIONS.find((reaction) => reaction === name || ALIASES[reaction].includes(name))
  if (found === undefined)
    throw new RelayError('usage', `${JSON.stringify(text)} is no reaction: give one of ${LIST}`)
  return found
}

const LIST = REACTIONS.map((reaction) => `${reaction} ${ALIASES[reaction][0]}`).join(', ')
