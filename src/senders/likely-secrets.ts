// Secrets that a sender may have in place of relay's.
import { Secret } from '../base/secret.js'
import type { Proof } from './scheme.js'
import { decodeKey } from './secrets.js'
import { type Unproved, unproved } from './unproved.js'

export const MARK = 'whsec_'
export const LACKS_MARK = `relay's secret lacks the ${MARK} at its start`
const HAS_MARK = `relay's secret begins with ${MARK}, the sender's does not`
const UNDECODED = `it is signed with the secret as text: this sender decodes the base64 after ${MARK}`
const DECODED = 'it is signed with the secret decoded from base64: this sender uses it as text'

/** Alternative keys of a secret, since senders disagree on the meaning of `whsec_`. */
export function* otherKeys(secret: Secret, proof: Proof): Generator<readonly [Secret, Proof, hint: string]> {
  const text = secret.reveal()
  const isMarked = text.startsWith(MARK)
  const toggled = new Secret(isMarked ? text.slice(MARK.length) : MARK + text)
  const { key, ...asText } = proof
  if (key === 'base64') for (const each of [secret, toggled]) yield [each, asText, UNDECODED]
  if (key === 'hex') yield [secret, asText, 'it is signed with the secret as text: leave out key=hex']
  if (!key) yield [toggled, proof, isMarked ? HAS_MARK : LACKS_MARK]
  if (key !== 'base64' && decodeKey(secret)) yield [secret, { ...proof, key: 'base64' }, DECODED]
  if (key !== 'hex' && decodeKey(secret, 'hex'))
    yield [secret, { ...proof, key: 'hex' }, 'it is signed with the secret decoded from hex: key=hex']
}

/** White space that copying adds before and after a secret, and its names in messages. */
const STARTS = ['', ' ', '\t', '\n']
const ENDS = ['', '\n', '\r\n', ' ', '\t']
const NAMES: Readonly<Record<string, string>> = {
  ' ': 'a space',
  '\t': 'a tab',
  '\n': 'a newline',
  '\r\n': 'a carriage return and newline',
}

/**
 * Variants of a secret with other white space at its ends, the smallest changes first, with the reason if the sender
 * has that one.
 */
export function* likelySecrets(secret: Secret): Generator<readonly [Secret, Unproved]> {
  const text = secret.reveal()
  const bare = text.trim()
  if (bare === '') return
  const [ownStart, ownEnd] = [text.slice(0, text.indexOf(bare)), text.slice(text.trimEnd().length)]
  for (const start of new Set([ownStart, ...STARTS]))
    for (const end of new Set([ownEnd, ...ENDS])) {
      const [startDiffers, endDiffers] = [start !== ownStart, end !== ownEnd]
      if (!startDiffers && !endDiffers) continue
      const added = [
        ...(startDiffers && start !== '' ? [`begins with ${NAMES[start]}`] : []),
        ...(endDiffers && end !== '' ? [`ends in ${NAMES[end]}`] : []),
      ].join(' and ')
      const sides = startDiffers && endDiffers ? 'start and end' : startDiffers ? 'start' : 'end'
      const lacks = `relay's secret has white space at its ${sides}, the sender's does not`
      const hint = added === '' ? lacks : `the sender's secret ${added}, relay's does not`
      yield [new Secret(start + bare + end), unproved('secret_white_space', hint)]
    }
}
