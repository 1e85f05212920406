import { RelayError } from '../base/errors.js'
import { firstPayload } from '../http/forms.js'
import type { RecordedDelivery } from '../replay/fixture.js'
import { commandWords, deliveryOf, exampleDelivery, triggerEvents } from '../replay/synthesize.js'
import type { Source } from '../senders/source.js'
import type { Sent, TriggerExample, TriggerList, TriggerRequest } from './api.js'
import type { InspectorParts } from './parts.js'
import { copiedBody, sendMade } from './send.js'
import { publicId, targetLabel, targetNames, targetsNamed } from './state.js'

/** Lists the events of every source that have an example, and the targets of the routes, each once. */
export function listTriggers({ sources, routing }: InspectorParts): TriggerList {
  const nameOf = targetNames(routing)
  const ids = new Set(routing.routes.map(({ id }) => id))
  return {
    sources: [...sources.values()].map(({ name: source, sender: { scheme } }) => ({
      source,
      scheme,
      events: triggerEvents(scheme),
    })),
    targets: [...ids].map((id) => ({ id: publicId(id), name: nameOf(id), label: targetLabel(id) })),
  }
}

/** Makes the example of an event. @throws RelayError `bad_request` for an unknown source or event */
export function readExample(parts: InspectorParts, { source, event }: ExampleQuery): TriggerExample {
  const { body } = makeExample(parts, sourceOf(parts, source), event)
  return { text: Buffer.from(firstPayload(body) ?? body).toString() }
}

interface ExampleQuery {
  readonly source?: string
  readonly event?: string
}

/**
 * Sends an example with another payload, or a payload of the user's own, through intake.
 * @throws RelayError `bad_request` for an unknown source, event or target, and for an invalid payload; `too_large`; as
 * intake
 */
export async function sendTriggered(parts: InspectorParts, request: TriggerRequest): Promise<Sent> {
  const { target, example, event, body } = request
  const source = sourceOf(parts, request.source)
  const targets = target === undefined ? undefined : targetsNamed([target], parts.routing.routes)
  const recorded =
    example === undefined ? makeOwn(source, event, body) : edited(makeExample(parts, source, example), body)
  return sendMade(parts, source, recorded, { targets })
}

function edited(recorded: RecordedDelivery, text: string): RecordedDelivery {
  return { ...recorded, body: copiedBody(recorded, recorded.headers, text) }
}

function makeExample({ host, command }: InspectorParts, source: Source, event = ''): RecordedDelivery {
  const url = source.name === host.source ? host.url : undefined
  return explained(() =>
    exampleDelivery({ name: source.name, scheme: source.sender.scheme }, event, {
      url,
      words: commandWords(command),
    }),
  )
}

/** The place where the page asks for the event. */
const WORDS = { event: 'Event', give: 'Give it in the field Event' }

function makeOwn(
  { name, sender: { scheme } }: Source,
  event: string | undefined,
  text: string,
): RecordedDelivery {
  return explained(() => deliveryOf({ name, scheme }, event, Buffer.from(text), { words: WORDS }).recorded)
}

/** @throws RelayError `bad_request` for what the user gave */
function explained<Made>(make: () => Made): Made {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof RelayError) || cause.kind !== 'usage') throw cause
    throw new RelayError('bad_request', `Not sent: ${cause.message}`, { cause })
  }
}

function sourceOf({ sources }: InspectorParts, name = ''): Source {
  const source = sources.get(name)
  if (source) return source
  throw new RelayError('bad_request', 'There is no source of that name any more. Reload the page')
}
