import { anywhere } from '../base/command-line.js'
import type { NamedScheme } from '../base/settings.js'
import { shownSource } from '../base/source-names.js'
import { didYouMean } from '../base/text.js'
import { SOURCE } from '../journal/filter.js'
import { SCHEME_NAMES, searchSenders, senderOf } from './senders.js'

/** Schemes that a source can have, including those of code hosts, for a second one. */
export const SOURCE_SCHEMES: readonly string[] = [...SCHEME_NAMES, 'github', 'gitea']

const NAME = new RegExp(`^${SOURCE}$`)

/**
 * Parses `[name=]scheme`. The first word of the scheme is the default name.
 * @throws Error with an explanation that does not repeat a possible secret
 */
export function parseSource(text: string): NamedScheme {
  const [, given, rest = ''] = /^(?:([^=\s]*)=)?(.*)$/s.exec(text.trim()) ?? []
  const scheme = rest.trim().replaceAll(/\s+/g, ' ')
  const [kind = ''] = scheme.split(' ')
  const [, ofName = ''] = /=\s*(\S*)/.exec(scheme) ?? []
  if (!SOURCE_SCHEMES.includes(kind) && SOURCE_SCHEMES.includes(ofName)) throw new Error(BAD_NAME)
  if (!SOURCE_SCHEMES.includes(kind))
    throw new Error(
      `must be a scheme, or name=scheme${meantScheme(kind)}. ${anywhere('source add')} lists the schemes`,
    )
  senderOf(scheme)
  // Schemes without proof must be written explicitly, and not be taken from a name.
  if (kind === 'none' && given === undefined)
    throw new Error('nothing proves deliveries of the scheme none. Give the source a name, as in door=none')
  const name = given ?? kind
  if (shownSource(name) === undefined)
    throw new Error(`${name} is a code host's name: write --source hub=${kind}`)
  if (NAME.test(name)) return { name, scheme }
  throw new Error(BAD_NAME)
}

/** Formats the closest scheme, else those of senders with this in their name, as ` (did you mean …?)`. Empty for none. */
export function meantScheme(kind: string): string {
  const closest = didYouMean(kind, SOURCE_SCHEMES)
  if (closest !== '' || kind.length < 3) return closest
  const found = searchSenders(kind.replaceAll(/[-_]/g, ' ')).map(({ name }) => name)
  return found.length > 0 && found.length < 5 ? ` (did you mean ${found.join(' or ')}?)` : ''
}

const BAD_NAME = 'the name of a source is 1–32 letters a–z, digits or "-", and begins with a letter'

/** True if a scheme has no proof. */
export function isUnsigned(scheme: string): boolean {
  return scheme.split(' ', 1)[0] === 'none'
}
