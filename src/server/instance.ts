import { Hono } from 'hono'
import { signedOut } from '../auth/accounts.js'
import { renew, revoke } from '../auth/renew.js'
import { RelayError } from '../base/errors.js'
import { type HttpEnv, readBody } from '../http/body.js'
import { PROOF_HEADER, sameProof } from '../instance/running.js'
import { parseUserId } from '../base/settings.js'
import type { Refused } from '../webhook/refused.js'
import type { AppParts, InspectorCodes, ServedInstance } from './parts.js'

/** A refused request without headers and body, so that a list of them is a small answer. */
export interface RefusedSummary extends Omit<Refused, 'reason' | 'headers' | 'body'> {
  readonly reason: string
}

/** `body`: its start, in base64. */
export interface RefusedEntry extends RefusedSummary, Pick<Refused, 'headers'> {
  readonly body: string
}

type Parts = Pick<AppParts, 'signIn' | 'refusals' | 'inspector'> & { readonly instance: ServedInstance }

/** 4 KiB: many times the longest call, one with a user's name of 256 bytes. */
const MAX_BODY = 4096

/**
 * POST /instance: a call of {@link InstanceCalls} as JSON, `{"call":"renew","userId":"ada"}`. The header {@link PROOF_HEADER} is
 * the HMAC of the body with the instance's key, which only a program has that reads the profile's data; without it the answer is
 * 404, as for an unknown path. No body is a valid challenge for GET /health, so no answer to a challenge is such a proof. A request
 * that is sent again changes nothing more: it renews only what is about to expire. Neither requests nor answers have a token.
 */
export function instanceRoutes(parts: Parts) {
  const calls = new Map<string, (given: Given) => Promise<object>>(Object.entries(callsOf(parts)))
  return new Hono<HttpEnv>().post('/instance', async (c) => {
    const body = Buffer.from(await readBody(c, MAX_BODY)).toString()
    // A challenge, whose proof anybody gets from GET /health, does not begin so.
    const isCall = body.startsWith('{') && sameProof(parts.instance.prove(body), c.req.header(PROOF_HEADER))
    if (!isCall) throw notFound()
    const { call, ...given }: { readonly call: string } & Given = JSON.parse(body)
    const answer = await calls.get(call)?.(given)
    if (!answer) throw notFound()
    return c.json(answer, 200)
  })
}

/** The arguments of all calls. */
interface Given {
  readonly userId: string
  readonly id: number
  readonly code: string
}

/** What the profile's other commands ask of the running instance, by name: what each call takes, and its answer. */
export type InstanceCalls = ReturnType<typeof callsOf>

function callsOf({ instance, signIn, refusals: { list }, inspector }: Parts) {
  const openInspector = (): Promise<InspectorCodes> => {
    if (inspector) return inspector()
    throw new RelayError('not_configured', 'The inspector is off: relay runs with --no-inspect')
  }
  return {
    /** Renews the user's token if it is about to expire; the store then has it. Fails as `renew`. */
    async renew({ userId }: Pick<Given, 'userId'>) {
      await renew(signIn, parseUserId(userId))
      return { ok: true }
    },
    /** Revokes the user's token here and at the code host, whose failure is a result, unlike one of this service. Fails as `revoke`. */
    async revoke({ userId }: Pick<Given, 'userId'>) {
      const user = parseUserId(userId)
      const { tokens, onAccount } = signIn
      const before = (await tokens.get(user)) ?? (await tokens.refreshable(user))
      const { removed, upstream } = await revoke(signIn, user)
      if (before && removed) onAccount(signedOut(user, before))
      return {
        removed,
        upstream: typeof upstream === 'string' ? upstream : { message: upstream.failed.clientMessage },
      }
    },
    /** Where deliveries go now. */
    routes: () => instance.routes(),
    /** Reads the settings again. Fails as `ServedInstance.reload`. */
    reload: () => instance.reload(),
    /** The refused requests, the newest last, and how many of each kind there were, including those no longer in the list. */
    refused: async () => ({
      refused: await Promise.all(list.list().map(summaryOf)),
      counts: list.counts(),
    }),
    /** One of them. Fails with `not_found` if the list does not have it, or no longer. */
    async 'refused entry'({ id }: Pick<Given, 'id'>): Promise<RefusedEntry> {
      const found = list.get(id)
      if (!found) throw notFound()
      const { headers, body } = found
      return { ...(await summaryOf(found)), headers, body: Buffer.from(body).toString('base64') }
    },
    /** A one-time code that opens the inspector. Fails with `not_configured` while that is off. */
    inspect: async () => ({ code: (await openInspector()).issueCode() }),
    /** Whether the code still waits to be used. Fails as `inspect`. */
    'inspect pending': async ({ code }: Pick<Given, 'code'>) => ({
      pending: (await openInspector()).isPending(code),
    }),
  }
}

async function summaryOf(refused: Refused): Promise<RefusedSummary> {
  const { headers: _headers, body: _body, reason, ...rest } = refused
  return { ...rest, reason: await reason() }
}

function notFound(): RelayError {
  return new RelayError('not_found', 'Not found')
}
