import { RelayError } from '../base/errors.js'
import type { Question } from '../dispatch/http-target.js'
import type { Reply } from '../dispatch/target.js'
import type { ServedInstance } from './parts.js'

/** Largest body of a request that is passed on and not stored: 64 KiB. Questions have one of a few hundred bytes. */
export const MAX_QUESTION = 65_536
/** Most questions at once, of all sources: anybody can ask, and each holds a connection to the user's program. */
const MAX_ASKED = 8
/** Headers of relay itself, or of what it says about the connection. */
const OWN = /^(?:x-request-id|content-length|date)$/i
/** Statuses of answers without a body (Fetch, section 2.2.3). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])
/**
 * A browser runs no script of such a page, and treats it as another origin than relay's, where the inspector is: the text
 * may be a stranger's.
 */
const GUARD = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox' }

/** Makes the response of a target's answer. Undefined for a status that no response has. */
export function responseOf({ status, headers, body }: Reply, method = 'POST'): Response | undefined {
  if (status < 200 || status > 599) return undefined
  const own = new Headers()
  for (const [name, value] of headers) if (!OWN.test(name)) own.append(name, value)
  for (const [name, value] of Object.entries(GUARD)) own.set(name, value)
  const isEmpty = method === 'HEAD' || BODILESS.has(status)
  return new Response(isEmpty ? null : new Uint8Array(body), { status, headers: own })
}

/** Passes questions on to the programs that answer them, a few at once. */
export class Questions {
  #asked = 0

  /** @throws RelayError `unavailable` without an answer in time, and while others are asked */
  async ask(instance: Pick<ServedInstance, 'ask'>, source: string, question: Question): Promise<Response> {
    if (this.#asked >= MAX_ASKED) throw new RelayError('unavailable', 'Too many questions at once')
    this.#asked++
    try {
      const reply = await instance.ask(source, question)
      const response = reply && responseOf(reply, question.method)
      if (!response) throw new RelayError('unavailable', 'The program has not answered')
      return response
    } finally {
      this.#asked--
    }
  }
}
