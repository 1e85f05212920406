import { RelayError, isError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { NamedScheme } from '../base/settings.js'
import { decodeKey, isEmptySecret } from '../senders/secrets.js'
import { knownSender, senderOf } from '../senders/senders.js'
import { isUnsigned, parseSource, SOURCE_SCHEMES } from '../senders/source-text.js'
import type { StoreUpdater } from '../store/kv.js'
import { makeOwnKey, putProfileSource } from './profile-secret.js'

/** A source that is set. */
interface KnownSource extends NamedScheme {
  /** Setting that alone names its scheme, if that is in a file of the working folder. */
  readonly ofFolder?: string | undefined
}

interface ChooseOptions {
  /** Sources that are set. */
  readonly known: readonly KnownSource[]
  /** Place where the user gave it, for errors: `<scheme>`. */
  readonly place: string
  /** Sentence about how to have a source without proof. */
  readonly unsigned: (name: string) => string
}

/**
 * Chooses the source whose secret is to be stored: an existing one by its name, or a new one, `[name=]scheme`.
 * @throws RelayError `usage` for text that is neither; a scheme without proof; and one that a file of the working folder
 * gives the name of another, since a scheme such as `token` would send a secret that is meant to sign
 */
export function chooseSource(text: string, { known, place, unsigned }: ChooseOptions): NamedScheme {
  const { name, scheme } = known.find((each) => each.name === text.trim()) ?? parseNamed(text, place)
  const { ofFolder } = known.find((each) => each.name === name) ?? {}
  if (ofFolder !== undefined && SOURCE_SCHEMES.includes(name) && scheme !== name)
    throw new RelayError(
      'usage',
      `${ofFolder} uses the name ${name} for another scheme, ${scheme}. Give that source another name`,
    )
  if (!isUnsigned(scheme)) return { name, scheme }
  throw new RelayError(
    'usage',
    `Nothing proves deliveries of the scheme none, so there is no secret to store. ${unsigned(name)}`,
  )
}

function parseNamed(text: string, place: string): NamedScheme {
  try {
    return parseSource(text)
  } catch (cause) {
    const why = isError(cause) ? cause.message : 'invalid'
    throw new RelayError('usage', `${place}: ${why}`, { cause })
  }
}

/** Longest secret: 4 KiB, more than any sender's. */
export const MAX_SECRET = 4096

/**
 * Reads a secret, or the public key of a sender that signs with a key pair. Surrounding white space is removed, and the
 * line breaks of a key, so that it is one line.
 * @param place where the user gave it, for errors: `Standard input`
 * @throws RelayError `usage` for an empty secret, for text that is not one secret, and for what cannot be the key of the
 * scheme
 */
export function readSourceSecret(text: string, place: string, scheme: string): Secret {
  const sender = senderOf(scheme)
  const given = new Secret(text.trim())
  const takesKey = sender.takesKey(given)
  const secret = takesKey ? new Secret(given.reveal().replaceAll(/\s*[\r\n]+\s*/g, ' ')) : given
  if (isEmptySecret(secret)) throw new RelayError('usage', `${place} has no ${takesKey ? 'key' : 'secret'}`)
  if (/[\p{Cc}\p{Zl}]/u.test(secret.reveal()))
    throw new RelayError('usage', `${place} is not one secret: it has several lines or control characters`)
  const defect = sender.secretDefect(secret)
  if (defect === undefined) return secret
  const what = takesKey ? `the ${sender.keyPairFor(secret)} public key of the sender` : 'a secret'
  throw new RelayError('usage', `${place} is not ${what}: it is ${defect}`)
}

/** Result of {@link storeSource}. */
interface AddedSource {
  /** True if it replaced another secret, which is accepted too until the next change. */
  readonly isReplaced: boolean
  /** Why it is probably not the right secret. Undefined if nothing speaks against it. */
  readonly doubt: string | undefined
  /** The public half of relay's own key pair, in the form of a program's setting. Undefined: a secret signs. */
  readonly ownKey: string | undefined
}

/** Beginnings of other values: API keys, public keys, a secret with a version before it, and one in quotation marks. */
const PROBABLY_OTHER = /^(?:[srp]k_|whpk_|v1,|['"`])/

/**
 * Stores a source with its secret in the profile, and makes relay's own key pair for a sender that signs with one.
 * @throws RelayError `storage`
 */
export async function storeSource(
  store: StoreUpdater,
  source: NamedScheme,
  secret: Secret,
): Promise<AddedSource> {
  const earlier = await putProfileSource(store, source, secret)
  const sender = senderOf(source.scheme)
  const kind = sender.keyPairFor(secret)
  const own = kind && (await makeOwnKey(store, source.name, kind))
  const ownKey = sender.publicHalf({ current: secret, own })
  return { isReplaced: earlier !== undefined, doubt: doubtOf(source, secret), ownKey }
}

function doubtOf({ scheme }: NamedScheme, secret: Secret): string | undefined {
  const isUsual = knownSender(scheme)?.secretLike?.test(secret.reveal()) ?? false
  if (senderOf(scheme).takesKey(secret)) return undefined
  if (!isUsual && PROBABLY_OTHER.test(secret.reveal()))
    return 'what was stored is probably not the secret that signs deliveries: it begins like an API key, a public key or a quotation'
  if (scheme === 'standard' && decodeKey(secret) === undefined)
    return 'what was stored is not base64, which the secret of a Standard Webhooks sender is'
  return undefined
}

/** Text to enter at the sender as its verify token. Undefined: it asks for none, or the source has no secret. */
export function verifyTokenOf(scheme: string, secret: Secret): string | undefined {
  return isEmptySecret(secret) ? undefined : senderOf(scheme).verifyToken(secret)
}
