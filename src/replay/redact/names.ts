/** Headers whose names contain one of these words prove a delivery, or grant access. */
const PROVING = /signature|hmac|digest|token|secret|auth|cookie|session|credential|password|api-?key|jwt/i

/** Words that make a name secret at any position. Case and word separators are ignored. */
const ANYWHERE =
  /secret|passw(?:or)?d|passphrase|passcode|credential|authorization|bearer|(?:private|api|access|signing|encryption|client|shared|master|auth|account|ssh|license)key|(?:recovery|backup|verification|security|otp|mfa|2fa)codes?|cardnumber|creditcard|iban|(?:web)?hookurl|responseurl|connectionstring/
/** Words that make a name secret only at its end: `token_type` and `session_count` are not secret. */
const AT_END = /(?:tokens?|pwd|jwt|cookies?|session(?:id|key)?|signatures?|otp|hmac|auth)$/
/** Words that make a name secret only as its last word: `bypass` and `spin` are not secret. */
const LAST_WORD = /(?:^| )(?:pass|passes|pw|pins?|cvv2?|cvc2?|ssn|sig|creds?)$/
/**
 * Further names of secrets among the parameters of addresses and fields of forms, which also carry the codes of
 * sign-ins and signed addresses.
 */
const PARAMETER = /^(?:code|state|key|x amz (?:credential|signature|security token)|se|sp|sid)$/

/** Names of members, attributes and elements that name a sibling's value, and of those that hold it. */
const NAMING =
  /^(?:name|key|header|field|id|label|param|parameter|variable|var|property|attribute|type|kind|k|n)$/i
const HOLDING = /value|^(?:val|v|contents?|data|stringdata|default|answer|string)$/i
/** Members whose values look random but identify something. */
const IDENTIFYING = /(?:id|sha|oid|ref|etag|digest|cursor|url|href|link)$/i

/** Longest name in characters. */
const MAX_NAME = 64

/** True for a header that proves its delivery, or grants access. */
export const isProvingHeader = (name: string): boolean => PROVING.test(name)

/** True if the name of a member, field, element or line identifies its value as secret. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name)
  const joined = words.replaceAll(' ', '')
  return ANYWHERE.test(joined) || AT_END.test(joined) || LAST_WORD.test(words)
}

/** Like {@link isSecretName}, for a parameter in an address or a field of a form. */
export const isSecretParameter = (name: string): boolean =>
  isSecretName(name) || PARAMETER.test(wordsOf(name))

/** True if a whole text is such a name, as in `{"name":"Authorization","value":"…"}`. */
export const isNameOfSecret = (text: string): boolean =>
  text.length <= MAX_NAME && /^[\p{L}\p{N} ._:$[\]-]+$/u.test(text) && isSecretName(text)

/** True if a member with this name names a sibling's value. */
export const isNaming = (name: string): boolean => NAMING.test(name)

/** True if a member with this name holds the value that a sibling names. */
export const isHolding = (name: string): boolean => name.length <= MAX_NAME && HOLDING.test(name)

/** True if a random-looking value of a member with this name is an id. */
export const isIdentifying = (name: string): boolean => IDENTIFYING.test(name)

/** Splits a name into words: `smtpPass`, `SMTP_PASS` and `smtp%20pass` become `smtp pass`. */
function wordsOf(name: string): string {
  // The end of a long name determines its meaning.
  const text = name.slice(-4 * MAX_NAME)
  const plain = text.includes('%') ? decoded(text) : text
  const spaced = plain.replaceAll(/([\p{Ll}\d])(?=\p{Lu})/gu, '$1 ').toLowerCase()
  return (spaced.match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
