import { RelayError } from '../base/errors.js'
import { firstPayload } from '../http/forms.js'
import { isCodeHost } from '../base/providers.js'
import { schemeOf } from '../codehost/schemes.js'
import { routesFor } from '../dispatch/routes.js'
import { type Header, indexHeaders, isSendable } from '../http/headers.js'
import type { Entry } from '../journal/types.js'
import { prepareRequest } from '../replay/prepare.js'
import { isForm } from '../webhook/signature.js'
import type { ForwardRequest, ProofDetail, Sent, SendRequest } from './api.js'
import { readEntry } from './deliveries.js'
import { describeProof } from './proof.js'
import { isMadeHeader } from './made-headers.js'
import type { InspectorParts } from './parts.js'
import { targetsNamed } from './state.js'

/**
 * Forwards an entry again, even where it succeeded: to the named targets, or to all that match.
 * @throws RelayError `not_found` for a removed entry, `bad_request` for a target that is not configured, `conflict` if
 * no route matches
 */
export async function forwardAgain(
  parts: InspectorParts,
  n: number,
  { targets: wanted }: ForwardRequest,
): Promise<Sent> {
  const { journal, routing, instance } = parts
  const { routes, ignore } = routing
  const entry = await readEntry(parts, n)
  const matching = new Set(routesFor(routes, ignore, entry).map(({ id }) => id))
  const targets = wanted ? targetsNamed(wanted, routes) : [...matching]
  if (targets.length === 0)
    throw new RelayError('conflict', `#${n} matches no route: add one with --forward or --exec`)
  if (!(await journal.requeue(n, targets))) throw new RelayError('not_found', `#${n} was removed meanwhile`)
  instance.forward()
  return { n }
}

/**
 * Sends an edited copy of an entry through intake like any delivery: signed with the current secret, under a new id. It
 * is forwarded to the named target, or by the routes.
 * @throws RelayError as intake; `not_found`; `bad_request` for an invalid target, header or payload; `too_large`
 */
export async function sendEdited(parts: InspectorParts, edit: SendRequest): Promise<Sent> {
  const { intake, host, sources, maxBody, routing } = parts
  const { from, event, target } = edit
  const entry = await readEntry(parts, from)
  const targets = target === undefined ? undefined : targetsNamed([target], routing.routes)
  const headers = headersOf(entry, edit, describeProof(entry, parts))
  const body = bodyOf(entry, headers, edit.body)
  if (body.byteLength > maxBody)
    throw new RelayError(
      'too_large',
      `The body has ${body.byteLength} bytes, the limit is ${maxBody} (--max-body)`,
    )
  // A delivery of an earlier code host is sent as one of the current code host.
  const source = sources.get(isCodeHost(entry.provider) ? host.name : entry.provider)
  if (!source)
    throw new RelayError('conflict', `Not sent: relay was started without the source ${entry.provider}`)
  const recorded = { ...entry, provider: source.name, scheme: source.schemeText, event, headers, body }
  const request = prepareRequest(recorded, {
    secret: source.secrets.current,
    freshId: true,
    isMade: true,
    now: parts.clock(),
  })
  try {
    const { n } = await intake.receive(request, { source, edited: { from, targets } })
    return { n }
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind !== 'invalid_event') throw error
    // Intake gives strangers no reason, but here the sender is the user.
    const why = error.cause instanceof Error ? error.cause.message : 'the delivery is malformed'
    throw new RelayError('bad_request', `Not sent: ${why}`, { cause: error })
  }
}

/** Headers that name the event, of any code host: Gitea sends three. */
const EVENT = /^x-[a-z]+-event$/i

/** Makes the headers of a copy. Its id and signatures are still those of the entry. */
function headersOf(
  entry: Entry,
  { event, headers: edited }: SendRequest,
  { made, hasEventHeader }: ProofDetail,
): readonly Header[] {
  for (const header of edited ?? []) {
    const name = JSON.stringify(header[0])
    if (isMadeHeader(header[0], made))
      throw new RelayError('bad_request', `Not sent: relay makes the header ${name} for each delivery`)
    if (!isSendable(header)) throw new RelayError('bad_request', `Not sent: the header ${name} is malformed`)
  }
  const headers = edited
    ? [...entry.headers.filter(([name]) => isMadeHeader(name, made)), ...edited]
    : entry.headers
  const isEvent = (name: string): boolean =>
    isCodeHost(entry.provider)
      ? EVENT.test(name)
      : hasEventHeader && schemeOf(entry.scheme ?? entry.provider).event.includes(name.toLowerCase())
  return headers.map(([name, value]) => [name, isEvent(name) ? event : value])
}

/**
 * Makes the body of a copy: the text as given, or a form with the entry's other fields if its Content-Type says so. A
 * form without a payload is replaced by the text.
 */
function bodyOf(entry: Entry, headers: readonly Header[], text: string): Uint8Array {
  const wasForm = isForm(indexHeaders(entry.headers))
  const isText = wasForm && !firstPayload(entry.body)
  if (isText || !isForm(indexHeaders(headers))) return Buffer.from(text)
  const fields = new URLSearchParams(wasForm ? Buffer.from(entry.body).toString() : '')
  fields.set('payload', text)
  return Buffer.from(fields.toString())
}
