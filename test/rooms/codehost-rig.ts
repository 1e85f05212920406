import { openHost } from '../../src/codehost/hosts.js'
import type { Account, CodeHost } from '../../src/codehost/host.js'
import type { OutboundRequest, SendOnce } from '../../src/net/client.js'

export const TOKEN = 'gho_canary_0123456789'
export const ISSUE = { owner: 'octo', repo: 'demo', number: 7 }
export const PULL = { owner: 'octo', repo: 'demo', number: 8 }
export const REPO = { owner: 'octo', repo: 'demo' }

export interface Reply {
  /** Default: 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: string | object
}

/** `reset`: the connection ends. `refused`: it is not made. */
export type Answer = Reply | 'reset' | 'refused'

export interface Asked extends OutboundRequest {
  readonly url: string
  /** Method, and the path within the API. */
  readonly line: string
  readonly json: unknown
}

export interface Rig {
  readonly host: CodeHost
  readonly account: Account
  readonly asked: readonly Asked[]
  readonly lines: () => readonly string[]
}

/** A code host without a network: each request is answered by `answer`. */
export function rig(
  answer: Answer | ((asked: Asked) => Answer),
  {
    name = 'github',
    url = 'https://git.example',
  }: { name?: 'github' | 'gitea' | 'sandbox'; url?: string } = {},
): Rig {
  const asked: Asked[] = []
  const sendOnce: SendOnce = async (address, request) => {
    request.signal?.throwIfAborted()
    const line = `${request.method} ${address.replace(/^https:\/\/[^/]+(?:\/api\/v\d)?/, '')}`
    const json: unknown = request.body === undefined ? undefined : JSON.parse(String(request.body))
    const one = { ...request, url: address, line, json }
    asked.push(one)
    const reply = typeof answer === 'function' ? answer(one) : answer
    if (typeof reply === 'string') {
      const code = reply === 'reset' ? 'ECONNRESET' : 'ECONNREFUSED'
      throw Object.assign(new Error(`it sent ${JSON.stringify(request.headers)}`), { code })
    }
    const { status = 200, headers = {}, body = '' } = reply
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    return {
      status,
      header: (name) => headers[name],
      body: (async function* () {
        yield bytes
      })(),
      discard: () => {},
    }
  }
  const host = openHost({ name, url, sendOnce })
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
