import { isSecretParameter } from './names.js'
import type { Span } from './span.js'

// A stranger wrote the text, so every repetition has a limit, or begins where no other match can.

/**
 * Secrets that their form reveals: keys of services, JSON Web Tokens, private keys, and credentials after an
 * authentication scheme.
 */
const FORMS: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)/g,
  /(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g,
  /\b(?:gh[a-z]_|github_pat_|gl[a-z]{2,5}-|xox[a-z](?:-|\.)|xapp-|whsec_|npm_|pypi-|hf_|dop_v1_|shp[a-z]{2}_|lin_[a-z]+_|glsa_|dapi|sk-|SG\.|ya29\.)[\w+/=.-]{10,}/g,
  /\b[a-z]{2,12}_(?:live|test|prod|secret|key)_[\w-]{8,}/gi,
  /\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}/g,
  /\bAIza[\w-]{30,}/g,
  /(?<=\b(?:Bearer|Basic|Token|Digest) )[\w+/=.~-]{8,}/gi,
]

/** A word of mixed letters and digits that is long enough to be random. */
const RANDOM = /(?<![\w/+.-])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*\d)[\w+-]{24,}={0,2}(?![\w/.-])/g

/** User and password of an address: `user:password@`. */
const USER_INFO = /(?<=\b[a-z][a-z0-9+.-]{0,30}:\/\/)(?!git@)[^\s/?#@"'<>]+(?=@)/gi
const PARAMETER = /(?<=^|[?&#])([\w.%[\]-]{1,64})=([^\s"'&#<>]+)/gm

/** A slash of an address, including one that JSON or another address has escaped. */
const SLASH = String.raw`(?:\\{0,3}\/|%(?:25)?2f)`
const slashed = (path: string): string => path.replaceAll('/', SLASH)
/** Hosts whose addresses grant access by themselves, with the path before the secret. */
const LETTING_IN = [
  String.raw`hooks\.slack(?:-gov)?\.com/`,
  String.raw`hooks\.zapier\.com/`,
  String.raw`[\w.-]{1,100}\.webhook\.office\.com/`,
  String.raw`outlook\.office(?:365)?\.com/webhook/`,
  String.raw`[\w.-]{1,100}\.(?:logic\.azure|powerplatform)\.com/`,
  String.raw`(?:\w{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/`,
  String.raw`api\.telegram\.org/(?:file/)?bot`,
  String.raw`hook\.[\w.-]{1,40}\.com/`,
  String.raw`maker\.ifttt\.com/`,
  String.raw`chat\.googleapis\.com/`,
  String.raw`open\.(?:feishu\.cn|larksuite\.com)/`,
  String.raw`events\.pagerduty\.com/integration/`,
  String.raw`(?:smee\.io|webhook\.site|hc-ping\.com)/`,
  String.raw`api\.netlify\.com/build_hooks/`,
  String.raw`api\.vercel\.com/v1/integrations/deploy/`,
  String.raw`api\.render\.com/deploy/`,
].map(slashed)
const LETS_IN = new RegExp(
  String.raw`\b(?:https?|wss?)(?::|%(?:25)?3a)${SLASH}{2}(?:${LETTING_IN.join('|')})([^\s"'<>()|]+)`,
  'gi',
)
const ADDRESS = /(?<=\b(?:https?|wss?):\/\/)[^\s"'<>()|?#]+/gi
/** Path segment before one that grants access even if it does not look random. */
const HOOK =
  /^(?:web)?hooks?$|^(?:invites?|invitations?|reset|confirm|verify|unsubscribe|magic|callback|share)$/i
const MIN_SEGMENT = 16

/** An address that another one, or a field, has escaped. */
const ESCAPED = /(?<![\w.+-])[a-z][a-z0-9+.-]{1,30}%(?:25)?3a[^\s"'<>&()|]+/gi
/** Deepest escaping of an address within others. */
const MAX_ESCAPED = 3

/** Length of the shortest form, including its scheme. */
const MIN_LENGTH = 14

/**
 * Finds secrets that their form reveals, wherever they are. With `identifies`, text that looks random is the name of
 * something.
 */
export function* secretsByForm(text: string, identifies: boolean): Generator<Span> {
  const forms = identifies ? FORMS : [...FORMS, RANDOM]
  if (text.length >= MIN_LENGTH) for (const form of forms) yield* matches(text, form)
  yield* inAddresses(text)
}

function* inAddresses(text: string, depth = 0): Generator<Span> {
  if (!/[/=]|%3a/i.test(text) && !text.includes('%253')) return
  for (const { start, end } of depth < MAX_ESCAPED ? matches(text, ESCAPED) : [])
    if (!inAddresses(decoded(text.slice(start, end)), depth + 1).next().done) yield { start, end }
  yield* matches(text, USER_INFO)
  for (const { 0: all, 1: name = '', 2: value = '', index } of text.matchAll(PARAMETER))
    if (isSecretParameter(name)) yield { start: index + all.length - value.length, end: index + all.length }
  for (const { 0: all, 1: rest = '', index } of text.matchAll(LETS_IN)) {
    // GitHub's examples have stars there.
    if (!/\w/.test(rest)) continue
    const start = index + all.length - rest.length
    yield { start, end: start + rest.replace(/[\\.,;:!]{1,8}$/, '').length }
  }
  for (const { 0: address, index } of text.matchAll(ADDRESS)) {
    let [start, isAfterHook] = [index, false]
    for (const [i, segment] of address.split('/').entries()) {
      if (i > 0 && letsIn(segment, isAfterHook)) yield { start, end: start + segment.length }
      isAfterHook ||= i > 0 && HOOK.test(segment)
      start += segment.length + 1
    }
  }
}

function letsIn(segment: string, isAfterHook: boolean): boolean {
  if (segment.length < MIN_SEGMENT || !/^[\w~=+-]+$/.test(segment) || !/\d/.test(segment)) return false
  return isAfterHook ? /[a-z]/i.test(segment) : /[a-z]/.test(segment) && /[A-Z]/.test(segment)
}

const decoded = (text: string): string =>
  text.replaceAll(/%[0-7][\da-f]/gi, (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16)))

function* matches(text: string, pattern: RegExp): Generator<Span> {
  for (const { 0: all, index } of text.matchAll(pattern)) yield { start: index, end: index + all.length }
}
