import { Hono } from 'hono'
import { signedOut } from '../auth/accounts.js'
import { renewToken, revokeToken } from '../auth/renew.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { publicTargetId } from '../dispatch/routes.js'
import type { Again, AgainOptions } from '../events/status.js'
import { type HttpEnv, readBody } from '../http/body.js'
import { errorResponse } from '../http/router.js'
import { answerText, failureOf, type InstanceStatus, PROOF_HEADER, sameProof } from '../instance/protocol.js'
import { type NamedScheme, parseUserId } from '../base/settings.js'
import type { RefusedRequest } from '../webhook/refused.js'
import type { AppParts, InspectorCodes, ServedInstance } from './parts.js'

/** A refused request without headers and body, so that a list of them is a small response. */
export interface RefusedSummary extends Omit<RefusedRequest, 'reason' | 'headers' | 'body'> {
  readonly reason: string
}

/** A refused request. `body` is its beginning, in base64. */
export interface RefusedEntry extends RefusedSummary, Pick<RefusedRequest, 'headers' | 'query'> {
  readonly body: string
}

type Parts = Pick<AppParts, 'signIn' | 'refusals' | 'inspector' | 'log'> & {
  readonly instance: ServedInstance
}

/** Largest body of a call: 4 KiB, many times the longest one, which has a user's name of 256 bytes. */
const MAX_BODY = 4096

/**
 * POST /instance: a call of {@link InstanceCalls} as JSON, `{"call":"renew","userId":"ada","nonce":"…"}`, or `changes`,
 * which responds with a stream of `ChangeLine`.
 * The header {@link PROOF_HEADER} is the HMAC of the body with the instance's key, which only programs have that can
 * read the profile's data. Without it the response is 404, as for an unknown path. The same header of the response
 * proves that.
 * A failed call responds with a `Failure`. A repeated call changes nothing more: only a token that is about to expire
 * is renewed. Neither requests nor responses contain a user's token.
 */
export function instanceRoutes(parts: Parts) {
  const { instance, log } = parts
  const calls = new Map<string, (given: Given) => object | Promise<object>>(Object.entries(callsOf(parts)))
  return new Hono<HttpEnv>().post('/instance', async (c) => {
    const body = Buffer.from(await readBody(c, MAX_BODY)).toString()
    const proof = c.req.header(PROOF_HEADER) ?? ''
    // GET /health proves any challenge to anyone, but a challenge never begins with `{`.
    const isCall = body.startsWith('{') && sameProof(instance.prove(body), proof)
    if (!isCall) throw notFound()
    const proofOf = (status: number, text: string): Record<string, string> => ({
      [PROOF_HEADER]: instance.prove(answerText(proof, status, text)),
    })
    try {
      const { call, ...given }: { readonly call: string } & Given = JSON.parse(body)
      if (call === 'changes') return instance.changes.open(proofOf(200, ''), c.env?.outgoing)
      const answer = await calls.get(call)?.(given)
      if (!answer) throw unknownCall(call)
      const text = JSON.stringify(answer)
      return c.body(text, 200, { ...JSON_TYPE, ...proofOf(200, text) })
    } catch (thrown) {
      const error = toRelayError(thrown)
      const { status, headers } = errorResponse(error, log, {}, 'POST /instance')
      const text = JSON.stringify(failureOf(error))
      return new Response(text, {
        status,
        headers: { ...Object.fromEntries(headers), ...proofOf(status, text) },
      })
    }
  })
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

function unknownCall(call: string): RelayError {
  return new RelayError(
    'unavailable',
    `the running relay has no call ${JSON.stringify(call)}: it is of another version. Restart it`,
  )
}

/** Arguments of all calls. */
interface Given extends NamedScheme {
  readonly userId: string
  readonly id: number
  readonly which?: AgainOptions['which']
  readonly code: string
}

/** Calls that the profile's other commands make to the running instance, by name, with their arguments and results. */
export type InstanceCalls = ReturnType<typeof callsOf>

function callsOf({ signIn, refusals: { list }, inspector, instance }: Parts) {
  const openInspector = (): Promise<InspectorCodes> => {
    if (inspector) return inspector()
    throw new RelayError('not_configured', 'The inspector is off: relay runs with --no-inspect')
  }
  return {
    status: (): InstanceStatus => instance.status(),
    /** Renews the user's token if it is about to expire, and stores it. Fails as `renewToken`. */
    async renew({ userId }: { readonly userId: string }) {
      await renewToken(signIn, parseUserId(userId))
      return { ok: true }
    },
    /**
     * Revokes the user's token here and at the code host. A failure of the code host is a result, unlike one of this
     * service. Fails as `revokeToken`.
     */
    async revoke({ userId }: { readonly userId: string }) {
      const user = parseUserId(userId)
      const { tokens, onAccount } = signIn
      const before = (await tokens.get(user)) ?? (await tokens.refreshable(user))
      const { removed, upstream } = await revokeToken(signIn, user)
      if (before && removed) onAccount(signedOut(user, before))
      return {
        removed,
        upstream: typeof upstream === 'string' ? upstream : { message: upstream.failed.clientMessage },
      }
    },
    routes: () => instance.routes(),
    ...ownCalls(instance),
    /** Reloads the settings. Fails as `ServedInstance.reload`, with the reason, which may name files. */
    async reload() {
      try {
        return await instance.reload()
      } catch (cause) {
        const { kind, message } = toRelayError(cause)
        throw new RelayError(kind, message, { cause, forClients: true })
      }
    },
    /** Lists the refused requests, the newest last. The counts include requests no longer listed. */
    refused: async () => ({
      refused: await Promise.all(list.list().map(summaryOf)),
      counts: list.counts(),
    }),
    /** Returns one refused request. Fails with `not_found` if it is not listed, or no longer. */
    async 'refused entry'({ id }: { readonly id: number }): Promise<RefusedEntry> {
      const found = list.get(id)
      if (!found) throw notFound()
      const { headers, query, body } = found
      return { ...(await summaryOf(found)), headers, query, body: Buffer.from(body).toString('base64') }
    },
    /** Issues a one-time code that opens the inspector. Fails with `not_configured` if the inspector is off. */
    inspect: async () => ({ code: (await openInspector()).issueCode() }),
    /** Tells if the code is still unused. Fails as `inspect`. */
    'inspect pending': async ({ code }: { readonly code: string }) => ({
      pending: (await openInspector()).isPending(code),
    }),
  }
}

function ownCalls(instance: ServedInstance) {
  return {
    /**
     * Expects the secret that a handshake of a source brings, for some seconds. Returns it once it has come: a webhook's
     * secret, to be stored by the command.
     */
    'expect secret': ({ name, scheme }: NamedScheme): { readonly secret: string | null } => ({
      secret: instance.expectSecret({ name, scheme })?.reveal() ?? null,
    }),
    /** Forwards an entry at once. Targets are public ids. Fails as `ServedInstance.forwardAgain`. */
    async 'forward again'({ id, which }: Pick<Given, 'id' | 'which'>): Promise<Again> {
      const again = await instance.forwardAgain(id, { which })
      return { ...again, targets: again.targets.map(publicTargetId) }
    },
    /** Gives up the waiting forwards of an entry. The targets are public ids. Fails as `ServedInstance.skip`. */
    async skip({ id }: Pick<Given, 'id'>): Promise<{ readonly targets: readonly string[] }> {
      return { targets: (await instance.skip(id)).map(publicTargetId) }
    },
  }
}

async function summaryOf(refused: RefusedRequest): Promise<RefusedSummary> {
  const { headers: _headers, body: _body, reason, ...rest } = refused
  return { ...rest, reason: await reason() }
}

function notFound(): RelayError {
  return new RelayError('not_found', 'Not found')
}
