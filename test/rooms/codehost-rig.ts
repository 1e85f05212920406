import { openHost } from '../../src/codehost/hosts.js'
import type { OutboundRequest, SendOnce } from '../../src/net/client.js'

export const TOKEN = 'gho_canary_0123456789'
export const ISSUE = { owner: 'octo', repo: 'demo', number: 7 }
export const PULL = { owner: 'octo', repo: 'demo', number: 8 }
export const REPO = { owner: 'octo', repo: 'demo' }

/** A merge is tried again without a noticeable wait. */
export const QUICK_MERGE = { mergeDelay: 1, mergeTime: 20 }

export interface Reply {
  /** Default: 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: string | object
}

/** `reset`: the connection ends. `hang`: no answer until the signal aborts. */
export type Answer = Reply | 'reset' | 'hang'

export interface Asked extends OutboundRequest {
  readonly url: string
  /** Method, and the path within the API. */
  readonly line: string
  /** The body as JSON, and as a form. */
  readonly json: unknown
  readonly form: Readonly<Record<string, string>>
}

/** A code host's servers without a network: each request is answered by `answer`. */
export function servers(answer: Answer | ((asked: Asked) => Answer | Promise<Answer>)) {
  const asked: Asked[] = []
  const sendOnce: SendOnce = async (url, request) => {
    request.signal?.throwIfAborted()
    const line = `${request.method} ${url.replace(/^https:\/\/[^/]+(?:\/api\/v\d)?/, '')}`
    const text = String(request.body ?? '')
    const json: unknown = text.startsWith('{') ? JSON.parse(text) : undefined
    const one = { ...request, url, line, json, form: Object.fromEntries(new URLSearchParams(text)) }
    asked.push(one)
    const reply = typeof answer === 'function' ? await answer(one) : answer
    if (reply === 'hang') await aborted(request.signal)
    if (typeof reply === 'string')
      throw Object.assign(new Error(`reset while it sent ${JSON.stringify(request)}`), { code: 'ECONNRESET' })
    const { status = 200, headers = {}, body = '' } = reply
    const all = typeof body === 'string' ? headers : { 'content-type': 'application/json', ...headers }
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    return {
      status,
      header: (name) => all[name],
      body: (async function* () {
        yield bytes
      })(),
      discard: () => {},
    }
  }
  return { sendOnce, asked }
}

/** No answer until the signal aborts. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason))
  })
}

/** A code host and a user's account there, whose requests are answered by `answer`. */
export async function rig(
  answer: Answer | ((asked: Asked) => Answer),
  { name = 'github' }: { readonly name?: 'github' | 'gitea' | 'gitlab' } = {},
) {
  const { sendOnce, asked } = servers(answer)
  const host = await openHost({ name, url: 'https://git.example', sendOnce, limits: QUICK_MERGE })
  return { host, account: host.as(TOKEN), asked, lines: () => asked.map(({ line }) => line) }
}

/** What a call rejects with. */
export async function failure(
  call: Promise<unknown>,
): Promise<{ kind: string; message: string; cause?: unknown }> {
  return call.then(
    () => ({ kind: 'none', message: 'it did not fail' }),
    (error: unknown) => Object(error),
  )
}
