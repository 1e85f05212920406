import { pathOf, shownSource } from '../base/source-names.js'
import { RelayError, isError } from '../base/errors.js'
import { firstPayload, isFormType } from '../http/forms.js'
import { isSecretHeader, senderOf } from '../senders/senders.js'
import { type Header, indexHeaders, isSendable } from '../http/headers.js'
import type { Entry, StoredRequest } from '../journal/types.js'
import type { RecordedDelivery } from '../replay/fixture.js'
import { prepareRequest } from '../replay/prepare.js'
import type { Source } from '../senders/source.js'
import type { RequestOrigin } from '../webhook/intake.js'
import type { ForwardRequest, ProofDetail, Sent, SendRequest } from './api.js'
import { readEntry } from './deliveries.js'
import { describeProof } from './proof.js'
import { isMadeHeader } from './made-headers.js'
import type { InspectorParts } from './parts.js'
import { targetsNamed } from './state.js'

/**
 * Forwards an entry again at once, even where it succeeded: to the named targets, or to all that match.
 * @throws RelayError `not_found` for a removed entry, `bad_request` for a target that is not configured, `conflict` if
 * no route matches
 */
export async function forwardAgain(
  parts: InspectorParts,
  n: number,
  { targets: wanted }: ForwardRequest,
): Promise<Sent> {
  const { routing, instance } = parts
  // Says why it is gone.
  await readEntry(parts, n)
  const named = wanted && targetsNamed(wanted, routing.routes)
  const { targets } = await instance.forwardAgain(n, { targets: named })
  if (targets.length === 0) throw new RelayError('conflict', `#${n} matches no route: add one under State`)
  return { n }
}

/**
 * Gives up the waiting forwards of an entry.
 * @throws RelayError `conflict` if nothing waits
 */
export async function skipWaiting({ instance }: InspectorParts, n: number): Promise<Sent> {
  if ((await instance.skip(n)).length === 0) throw new RelayError('conflict', `Nothing of #${n} waits`)
  return { n }
}

/**
 * Sends an edited copy of an entry through intake like any delivery: signed with the current secret, under a new id. It
 * is forwarded to the named target, or by the routes.
 * @throws RelayError as intake; `not_found`; `bad_request` for an invalid target, header or payload; `too_large`
 */
export async function sendEdited(parts: InspectorParts, edit: SendRequest): Promise<Sent> {
  const { host, sources, routing } = parts
  const { from, event, target } = edit
  const entry = await readEntry(parts, from)
  const targets = target === undefined ? undefined : targetsNamed([target], routing.routes)
  const headers = headersOf(entry, edit, describeProof(entry, parts))
  const copy = copiedBody(entry, headers, edit.body)
  const body = senderOf(entry.scheme ?? entry.provider).revealSecrets(copy, entry.body)
  // A delivery of an earlier code host is sent as one of the current code host.
  const source = sources.get(shownSource(entry.provider) === undefined ? host.source : entry.provider)
  if (!source)
    throw new RelayError('conflict', `Not sent: relay was started without the source ${entry.provider}`)
  return sendMade(parts, source, { ...entry, event, headers, body }, { from, targets })
}

/**
 * Sends what the user made through intake like any delivery: signed with the current secret of its source, under a new
 * id. Its first attempt is at once.
 * @throws RelayError as intake; `bad_request` for an invalid payload; `too_large`
 */
export async function sendMade(
  { intake, instance, maxBody, clock, url }: InspectorParts,
  source: Source,
  recorded: RecordedDelivery,
  made: NonNullable<RequestOrigin['made']>,
): Promise<Sent> {
  const { byteLength } = recorded.body
  if (byteLength > maxBody)
    throw new RelayError(
      'too_large',
      `The body has ${byteLength} bytes, the limit is ${maxBody} (--max-body)`,
    )
  const request = prepareRequest(
    { ...recorded, provider: source.name, scheme: source.sender.scheme },
    {
      secrets: source.secrets,
      payloadUrl: source.payloadUrl ?? url + pathOf(source.name),
      freshId: true,
      isMade: true,
      now: clock(),
    },
  )
  try {
    const { n } = await intake.receive(request, { source, made })
    await instance.forwardAgain(n, { which: 'waiting' })
    return { n }
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind !== 'invalid_event') throw error
    // Intake gives strangers no reason, but here the sender is the user.
    const why = isError(error.cause) ? error.cause.message : 'the delivery is malformed'
    throw new RelayError('bad_request', `Not sent: ${why}`, { cause: error })
  }
}

/** Makes the headers of a copy. Its id and signatures are still those of the entry. */
function headersOf(
  entry: Entry,
  { event, headers: edited }: SendRequest,
  { made, hasEventHeader }: ProofDetail,
): readonly Header[] {
  for (const header of edited ?? []) {
    const name = JSON.stringify(header[0])
    if (isMadeHeader(header[0], made) || isSecretHeader(header[0]))
      throw new RelayError('bad_request', `Not sent: relay makes the header ${name} for each delivery`)
    if (!isSendable(header)) throw new RelayError('bad_request', `Not sent: the header ${name} is malformed`)
  }
  const headers = edited
    ? [...entry.headers.filter(([name]) => isMadeHeader(name, made)), ...edited]
    : entry.headers
  const sender = senderOf(entry.scheme ?? entry.provider)
  const isEvent = (name: string): boolean => hasEventHeader && sender.roleOf(name) === 'event'
  return headers.map(([name, value]) => [name, isEvent(name) ? event : value])
}

/**
 * Makes the body of a copy: the text as given, or a form with the entry's other fields if its Content-Type says so. A
 * form without a payload is replaced by the text.
 */
export function copiedBody(entry: StoredRequest, headers: readonly Header[], text: string): Uint8Array {
  const isForm = (lines: readonly Header[]): boolean =>
    isFormType(indexHeaders(lines).get('content-type')?.[0])
  const wasForm = isForm(entry.headers)
  const isText = wasForm && !firstPayload(entry.body)
  if (isText || !isForm(headers)) return Buffer.from(text)
  const fields = new URLSearchParams(wasForm ? Buffer.from(entry.body).toString() : '')
  fields.set('payload', text)
  return Buffer.from(fields.toString())
}
