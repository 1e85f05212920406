import { RelayError } from '../base/errors.js'
import { type Route, routesFor } from '../dispatch/routes.js'
import { type Header, indexHeaders } from '../http/headers.js'
import type { Entry } from '../journal/types.js'
import { isForm } from '../webhook/signature.js'
import { prepare, withFreshId } from '../replay/prepare.js'
import type { ForwardRequest, Sent, SendRequest } from './api.js'
import { findEntry } from './detail.js'
import type { InspectorParts } from './parts.js'
import { targetsNamed } from './target-ids.js'

type SendParts = Pick<
  InspectorParts,
  'journal' | 'routing' | 'running' | 'host' | 'intake' | 'secrets' | 'maxBody'
>

/**
 * Forwards an entry again, to the targets named or to all that match, also where it succeeded.
 * @throws RelayError `not_found` for an entry that is gone, `bad_request` for a target that is not configured, `conflict` where it goes to none.
 */
export async function forwardAgain(
  parts: SendParts,
  n: number,
  { targets: wanted }: ForwardRequest,
): Promise<Sent> {
  const { journal, running } = parts
  const entry = await findEntry(parts, n)
  const { routes, ignore } = parts.routing
  const targets = wanted ? targetsNamed(wanted, routes) : idsOf(routesFor(routes, ignore, entry))
  if (targets.length === 0)
    throw new RelayError('conflict', `#${n} matches no route: add one with --forward or --exec`)
  if (!(await journal.again(n, targets))) throw new RelayError('not_found', `#${n} was removed meanwhile`)
  running.forward(n, targets)
  return { n }
}

/**
 * Sends an edited copy of an entry: signed with the current secret, under an id of its own, through intake like any delivery. It is
 * forwarded to the target named, or by the routes.
 * @throws RelayError as intake; `not_found`, `bad_request`, `too_large`.
 */
export async function sendEdited(
  parts: SendParts,
  { from, event, body, target }: SendRequest,
): Promise<Sent> {
  const { intake, host, secrets, maxBody } = parts
  const entry = await findEntry(parts, from)
  const targets = target === undefined ? undefined : targetsNamed([target], parts.routing.routes)
  const bytes = bodyOf(entry, body)
  if (bytes.byteLength > maxBody)
    throw new RelayError(
      'too_large',
      `The body has ${bytes.byteLength} bytes, the limit is ${maxBody} (--max-body)`,
    )
  const headers = withEvent(entry.headers, event)
  const recorded = { ...entry, provider: host.name, event, headers, body: bytes }
  const request = withFreshId(prepare(recorded, { secret: secrets.current }))
  try {
    const { n } = await intake.receive(request, { source: host.name, edited: { from, targets } })
    return { n }
  } catch (error) {
    throw explained(error)
  }
}

/** The sender's own mistake is explained to them: they are the user, and no stranger. */
function explained(error: unknown): unknown {
  if (!(error instanceof RelayError) || error.kind !== 'invalid_event') return error
  const why = error.cause instanceof Error ? error.cause.message : 'the delivery is malformed'
  return new RelayError('bad_request', `Not sent: ${why}`, { cause: error })
}

function idsOf(routes: readonly Route[]): readonly string[] {
  return [...new Set(routes.map(({ id }) => id))]
}

/** The body of a copy: the text as it is, or in the form that the entry is. */
function bodyOf({ headers, body }: Entry, text: string): Uint8Array {
  if (!isForm(indexHeaders(headers))) return Buffer.from(text)
  const fields = new URLSearchParams(Buffer.from(body).toString())
  fields.set('payload', text)
  return Buffer.from(fields.toString())
}

/** A header that names the event, of any provider. */
const EVENT = /^x-[a-z]+-event$/i

function withEvent(headers: readonly Header[], event: string): readonly Header[] {
  return headers.map(([name, value]) => [name, EVENT.test(name) ? event : value])
}
