// Claims of a token (JWT, RFC 7519), unproved, and bodies that are one token as a whole.
import { fieldsOf, parseJson } from '../json/parse.js'

/** A token in its compact form (RFC 7515 section 7.1), whose header begins with a brace. */
const TOKEN = /^e[\w-]+\.[\w-]+\.[\w-]*$/
const [SMALL_E, LAST] = [0x65, 0x7f]

/** Header and claims of a token, unproved. Undefined for text that is none. */
export function decodeJwt(
  token: string,
):
  | { readonly header: Readonly<Record<string, unknown>>; readonly claims: Readonly<Record<string, unknown>> }
  | undefined {
  try {
    const [header, claims] = token
      .split('.', 2)
      .map((part) => fieldsOf(parseJson(Buffer.from(part, 'base64url'))))
    return header && claims && { header, claims }
  } catch {
    return undefined
  }
}

/**
 * The claims of a body that is a token. A claim that is a JSON object or list in a text is read as that, and so on, as
 * senders put their events there. Its members are the claims alone: the text is apart, so that no JSON can pass for a token.
 */
export class TokenBody {
  readonly #text: string

  constructor(text: string, claims: Readonly<Record<string, unknown>>) {
    this.#text = text
    for (const [name, value] of Object.entries(claims))
      // An assignment would set the prototype for `__proto__`.
      Object.defineProperty(this, name, { value: unfolded(value, 1), enumerable: true })
  }

  /** The token. Undefined for any other value. */
  static textOf(value: unknown): string | undefined {
    return typeof value === 'object' && value !== null && #text in value ? value.#text : undefined
  }
}

/** Reads a body that is a token. Undefined for any other. */
export function readToken(body: Uint8Array): TokenBody | undefined {
  if (body[0] !== SMALL_E || body.some((byte) => byte >= LAST)) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1').trimEnd()
  const { claims } = (TOKEN.test(text) && decodeJwt(text)) || {}
  return claims && new TokenBody(text, claims)
}

/** The JSON of a token's claims. */
export function claimsText(token: string): string {
  return Buffer.from(token.split('.', 2)[1] ?? '', 'base64url').toString()
}

/** The token with other claims, which its signature does not cover. */
export function withClaims(token: string, json: string): string {
  const [header = '', , signature = ''] = token.split('.')
  return `${header}.${Buffer.from(json).toString('base64url')}.${signature}`
}

/** An unsigned body with these claims. */
export function unsignedToken(claims: unknown): string {
  return withClaims(`${Buffer.from('{"alg":"none"}').toString('base64url')}..`, JSON.stringify(claims))
}

/** Deepest value in which texts are read. Without a limit, JSON inside JSON could be nested any number of times. */
const MAX_UNFOLDED = 100

/** A value in which texts that are JSON objects and lists are read. */
function unfolded(value: unknown, depth: number): unknown {
  if (depth > MAX_UNFOLDED) return value
  if (typeof value === 'string') {
    const inner = embeddedJson(value)
    return inner === undefined ? value : unfolded(inner, depth + 1)
  }
  if (Array.isArray(value)) return value.map((each) => unfolded(each, depth + 1))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unfolded(each, depth + 1)]))
}

/** The object or list in a text that is JSON. Undefined for any other text. */
export function embeddedJson(text: string): unknown {
  if (!/^[[{]/.test(text)) return undefined
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
