/** Headers whose names contain this sign, or let in. */
const PROVING = /signature|hmac|digest|token|secret|auth|cookie|session|credential|password|api-?key|jwt/i

/** What makes a name secret wherever it stands in it: read without case, and without what separates words. */
const ANYWHERE =
  /secret|passw(?:or)?d|passphrase|passcode|credential|authorization|bearer|(?:private|api|access|signing|encryption|client|shared|master|auth|account|ssh|license)key|(?:recovery|backup|verification|security|otp|mfa|2fa)codes?|cardnumber|creditcard|iban|(?:web)?hookurl|responseurl|connectionstring/
/** At its end only: `token_type` and `session_count` say nothing. */
const AT_END = /(?:tokens?|pwd|jwt|cookies?|session(?:id|key)?|signatures?|otp|hmac|auth)$/
/** As its last word: `bypass` and `spin` say nothing. */
const LAST_WORD = /(?:^| )(?:pass|passes|pw|pins?|cvv2?|cvc2?|ssn|sig|creds?)$/
/** Of a parameter of an address and a field of a form, which also carry the codes of sign-ins and signed addresses. */
const PARAMETER = /^(?:code|state|key|x amz (?:credential|signature|security token)|se|sp|sid)$/

/** Members, attributes and elements that name what another one next to them holds. */
const NAMING =
  /^(?:name|key|header|field|id|label|param|parameter|variable|var|property|attribute|type|kind|k|n)$/i
const HOLDING = /value|^(?:val|v|contents?|data|stringdata|default|answer|string)$/i
/** Members whose values look random and name something. */
const IDENTIFYING = /(?:id|sha|oid|ref|etag|digest|cursor|url|href|link)$/i

/** Longer text is no name. */
const MAX_NAME = 64

/** Whether a header proves its delivery, or lets in. */
export const isProvingHeader = (name: string): boolean => PROVING.test(name)

/** Whether the name of a member, field, element or line says that its value is secret. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name)
  const joined = words.replaceAll(' ', '')
  return ANYWHERE.test(joined) || AT_END.test(joined) || LAST_WORD.test(words)
}

/** The same of a parameter in an address and a field of a form. */
export const isSecretParameter = (name: string): boolean =>
  isSecretName(name) || PARAMETER.test(wordsOf(name))

/** Whether a text as a whole is such a name, as in `{"name":"Authorization","value":"…"}`. */
export const isNameOfSecret = (text: string): boolean =>
  text.length <= MAX_NAME && /^[\p{L}\p{N} ._:$[\]-]+$/u.test(text) && isSecretName(text)

/** Whether what has this name says what is next to it. */
export const isNaming = (name: string): boolean => NAMING.test(name)

/** Whether what has this name holds what something next to it names. */
export const isHolding = (name: string): boolean => name.length <= MAX_NAME && HOLDING.test(name)

/** Whether what looks random there is an id. */
export const isIdentifying = (name: string): boolean => IDENTIFYING.test(name)

/** `smtpPass`, `SMTP_PASS` and `smtp%20pass` as `smtp pass`. */
function wordsOf(name: string): string {
  // The end says what it is.
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
