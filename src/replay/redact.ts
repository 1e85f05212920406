import { randomBytes } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { isFormBody } from '../base/bytes.js'
import { RelayError } from '../base/errors.js'
import { schemeOf } from '../codehost/schemes.js'
import { type Header, passedOn } from '../http/headers.js'
import { parseJson } from '../json/parse.js'
import { tokens } from '../json/text.js'
import type { Recorded } from './fixture.js'

/** Names of headers that sign, or let in. Those of the delivery's scheme are added. */
const PROVING = /signature|hmac|digest|token|secret|auth|cookie|session|credential|password|api-?key|jwt/i

/** Names of JSON members, fields, parameters and elements whose values are secrets; compared without case, `_` and `-`. */
const SECRET_NAME =
  /secret|passw(?:or)?d|passphrase|passcode|pwd$|credential|private_?key|api_?key|access_?key|signing_?key|tokens?$|authorization|bearer|jwt$|cookies?$|session(?:_?id|_?key)?$|signature$|^sig$|otp$|^pin$|cvv$|cvc$|^ssn$|iban$|card_?number|^auth$|webhook_?url$/i
/** Of a parameter in an address, which also carries the codes of sign-ins and signed addresses. */
const SECRET_PARAMETER = /^(?:code|state|key|x-amz-(?:credential|signature|security-token)|se|sp|hmac)$/i

// A stranger wrote the text: every repetition has a limit, or begins where no other match can.

/** An e-mail address from its `@`, which can be escaped in an address. What stands before it is looked for from there. */
const AT = /(?:@|%40)(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,10}\p{L}{2,24}/giu
const LOCAL = /[\p{L}\p{N}.!#$'*+^_`{|}~-]/u
/** RFC 5321 section 4.5.3.1.1. */
const MAX_LOCAL = 64
/** The user of SSH addresses, whom everybody knows. */
const SSH_USER = /^git@/

/** What is a secret by its own form: keys of services, JSON Web Tokens, private keys, and what stands after a scheme of authentication. */
const FORMS: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)/g,
  /(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g,
  /\b(?:gh[a-z]_|github_pat_|gl[a-z]{2,5}-|xox[a-z](?:-|\.)|xapp-|whsec_|npm_|pypi-|hf_|dop_v1_|shp[a-z]{2}_|lin_[a-z]+_|glsa_|dapi|sk-|SG\.|ya29\.)[\w+/=.-]{10,}/g,
  /\b[a-z]{2,12}_(?:live|test|prod|secret|key)_[\w-]{8,}/gi,
  /\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}/g,
  /\bAIza[\w-]{30,}/g,
  /(?<=\/\/hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/-]+/g,
  /(?<=\/api\/webhooks\/\d+\/)[\w-]{20,}/g,
  /(?<=\b(?:Bearer|Basic|Token|Digest) )[\w+/=.~-]{8,}/gi,
]

/** `user:password@` of an address. */
const USER_INFO = /(?<=\b[a-z][a-z0-9+.-]*:\/\/)[^\s/?#@"'<>]+(?=@)/gi
/** A name and its value, in an address, a line of settings, or a text. */
const PAIR = /(?<![\w.-])([\w.-]{2,64})(["']?\s*[:=]\s*["']?)([^\s"'&,;<>]{3,})/g
const PARAMETER = /(?<=[?&#])([\w.-]{1,64})=([^\s"'&#<>]+)/g
/** An XML element that holds only text. */
const ELEMENT = /<([\w:.-]{2,64})(?:\s[^<>]*)?>([^<>]+)<\/\1>/g

/** A word of mixed letters and digits that is long enough to be random. */
const RANDOM = /(?<![\w/+.-])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*\d)[\w+-]{24,}={0,2}(?![\w/.-])/g
/** Members whose values look random and name something. */
const IDENTIFYING = /(?:id|sha|oid|ref|etag|digest|cursor|url|href|link)$/i
/** Characters of a value that is looked for everywhere: shorter ones are found by chance. */
const MIN_REPEATED = 6
const NAMED_DEPTH = 20

/** Of the values that a name shows to be secret, those that are looked for everywhere: more than any delivery has, and quickly found. */
const MAX_REPEATED = 200

/** Every value that is left out, with what stands for it: the same everywhere, so that what was equal stays equal. */
class Replacements {
  readonly #of = new Map<string, string>()
  readonly #made = new Set<string>()
  readonly #repeated = new Set<string>()
  #emails = 0
  #secrets = 0
  #all: RegExp | undefined

  email(value: string): string {
    return this.#known(value.replace(/%40/i, '@').toLowerCase(), () => `user${++this.#emails}@example.com`)
  }

  secret(value: string): string {
    if (this.#made.has(value)) return value
    if (value.length >= MIN_REPEATED && this.#repeated.size < MAX_REPEATED) this.#repeated.add(value)
    return this.#known(value, () => `redacted-${++this.#secrets}`)
  }

  /** From now on, {@link everywhere} finds what was found so far, the longest first: one may contain another. */
  repeat(): void {
    const found = [...this.#repeated].toSorted((one, other) => other.length - one.length)
    const escaped = found.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`))
    this.#all = found.length === 0 ? undefined : new RegExp(escaped.join('|'), 'g')
  }

  everywhere(text: string): string {
    return this.#all === undefined ? text : text.replace(this.#all, (value) => this.#of.get(value) ?? value)
  }

  #known(value: string, make: () => string): string {
    const made = this.#of.get(value) ?? make()
    this.#of.set(value, made)
    this.#made.add(made)
    return made
  }
}

/**
 * A delivery that is safe to pass on, with a key of its own in place of its sender's: without the headers that prove it; e-mail addresses,
 * tokens, and what looks like a secret by its name or form are replaced, in headers, JSON, forms, XML and text. JSON keeps its members,
 * and every byte that is not replaced.
 * @throws RelayError `usage` for a body that is not text
 */
export function redact(recorded: Recorded): Recorded {
  const { body, headers, provider, scheme: text = provider } = recorded
  if (!isUtf8(body))
    throw new RelayError(
      'usage',
      'Cannot redact a body that is not text: nothing in it can be recognized. Export it without --redact, and change it by hand',
    )
  const scheme = schemeOf(text)
  const proving = new Set([...scheme.proofs, ...(scheme.also ?? [])].map(({ header }) => header))
  const kept = passedOn(headers).filter(([name]) => !proving.has(name.toLowerCase()) && !PROVING.test(name))
  const replacements = new Replacements()
  const isForm = isFormBody(body)
  const redacted = (): readonly [readonly Header[], string] => [
    kept.map(([name, value]): Header => [name, redactText(value, replacements)]),
    redactBody(Buffer.from(body).toString(), isForm, replacements),
  ]
  // Twice, since what one place shows to be a secret may stand in another before it.
  redacted()
  replacements.repeat()
  const [lines, content] = redacted()
  const secret = randomBytes(24).toString('hex')
  return { ...recorded, headers: lines, body: Buffer.from(content), secret }
}

function redactBody(text: string, isForm: boolean, replacements: Replacements): string {
  if (!isForm) return redactJson(text, replacements) ?? redactText(text, replacements)
  const fields = [...new URLSearchParams(text)].map(([name, value]): [string, string] => [
    name,
    redactJson(value, replacements) ?? redactValue(value, SECRET_NAME.test(name), name, replacements),
  ])
  const changed = new URLSearchParams(fields).toString()
  return changed === new URLSearchParams(text).toString() ? text : changed
}

/** Redacts the strings of JSON, and leaves every other byte. Undefined for what is not an object or a list. */
function redactJson(text: string, replacements: Replacements, depth = 0): string | undefined {
  if (depth > NAMED_DEPTH || !isJson(text)) return undefined
  const parts: string[] = []
  /** Of each object and list around: the member that is being read, and whether its name or one around it says that it is secret. */
  const around: { name: string; isSecret: boolean; isObject: boolean; isName: boolean }[] = []
  let end = 0
  for (const token of tokens(text, Infinity)) {
    parts.push(text.slice(end, token.start))
    ;({ end } = token)
    const raw = text.slice(token.start, end)
    const place = around.at(-1)
    const isSecret = place?.isSecret === true || (place?.isObject === true && SECRET_NAME.test(place.name))
    if (raw === '{' || raw === '[')
      around.push({ name: place?.name ?? '', isSecret, isObject: raw === '{', isName: raw === '{' })
    else if (raw === '}' || raw === ']') around.pop()
    else if (place && raw === ',') place.isName = place.isObject
    else if (place && raw === ':') place.isName = false
    if (raw.startsWith('"') && place?.isName) {
      place.name = String(JSON.parse(raw))
      parts.push(quoted(raw, place.name, redactText(place.name, replacements)))
    } else if (raw.startsWith('"')) {
      const value = String(JSON.parse(raw))
      const inner = redactJson(value, replacements, depth + 1)
      const made = inner ?? redactValue(value, isSecret, place?.name ?? '', replacements)
      parts.push(quoted(raw, value, made))
    } else parts.push(isSecret && /^-?\d/.test(raw) ? '0' : raw)
  }
  parts.push(text.slice(end))
  return parts.join('')
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

const quoted = (raw: string, value: string, made: string): string =>
  value === made ? raw : JSON.stringify(made)

function redactValue(value: string, isSecret: boolean, name: string, replacements: Replacements): string {
  if (isSecret) return value === '' ? value : replacements.secret(value)
  return redactText(value, replacements, IDENTIFYING.test(name))
}

/** `identifies`: what looks random names something. */
function redactText(text: string, replacements: Replacements, identifies = false): string {
  const secret = (value: string): string => replacements.secret(value)
  const ofName = (name: string, value: string, more = SECRET_NAME): string =>
    more.test(name) || SECRET_NAME.test(name) ? secret(value) : value
  let rest = text
  for (const form of FORMS) rest = rest.replace(form, secret)
  rest = rest
    .replace(USER_INFO, (user) => (user === 'git' ? user : secret(user)))
    .replace(
      PARAMETER,
      (_, name: string, value: string) => `${name}=${ofName(name, value, SECRET_PARAMETER)}`,
    )
    .replace(PAIR, (all, name: string, between: string, value: string) =>
      value.startsWith('//') ? all : `${name}${between}${ofName(name, value)}`,
    )
    .replace(ELEMENT, (all, name: string, value: string) =>
      SECRET_NAME.test(name.replace(/^.*:/, ''))
        ? all.replace(`>${value}<`, () => `>${secret(value)}<`)
        : all,
    )
  rest = replaceEmails(rest, (email) => (SSH_USER.test(email) ? email : replacements.email(email)))
  if (!identifies) rest = rest.replace(RANDOM, secret)
  return replacements.everywhere(rest)
}

function replaceEmails(text: string, make: (email: string) => string): string {
  const parts: string[] = []
  let end = 0
  for (const { 0: at, index } of text.matchAll(AT)) {
    let start = index
    while (start > end && index - start < MAX_LOCAL && LOCAL.test(text.charAt(start - 1))) start--
    if (start === index) continue
    parts.push(text.slice(end, start), make(text.slice(start, index) + at))
    end = index + at.length
  }
  return parts.join('') + text.slice(end)
}
