import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { RelayError, toRelayError } from '../base/errors.js'
import { excerpt } from '../base/log.js'
import { Secret } from '../base/secret.js'
import type { Core } from '../core.js'
import type { HubMessage } from '../hub/protocol.js'
import type { TunnelStatus } from '../instance/protocol.js'
import { createSource, type Source } from '../senders/source.js'
import { type Arrived, answerDelivery, answerQuestion, type ArrivalParts } from '../server/arrived.js'
import { shakeHands } from '../server/handshake.js'
import type { Replying } from '../server/parts.js'
import { Questions } from '../server/reply.js'
import { type HubAnswer, type HubSource, HubTunnel, type Taken } from '../tunnel/hub-tunnel.js'

/** Answers of programs to a sender: those of routes that reply. */
export interface Answers extends Replying {
  /** Milliseconds that the sender of a source waits for its program. Undefined if none replies. */
  replyWithin(source: string): number | undefined
}

/** Time in milliseconds that a sender waits for its own form of answer, as to a handshake: Slack gives 3 s, the least of all. */
const HANDSHAKE_MS = 2500
/** Part of a program's time that the way through the hub may take. Milliseconds. */
const WAY_MS = 500

interface HubMessagesParts {
  readonly address: string
  /** Aborts once another relay of the profile has the tunnel. */
  readonly lost: AbortSignal
  readonly answers: Answers
}

/** Opens the tunnel to a hub, which passes what comes to the same functions as the HTTP service. */
export function openHubTunnel(core: Core, { address, lost, answers }: HubMessagesParts): HubTunnel {
  const { settings, database, log, clock, events } = core
  const { maxBody, hubToken: token, folder } = settings
  const messages = new Messages(core, { ...core, maxBody, instance: answers }, answers)
  const hub = new URL(address).origin
  const place = [hostname(), database.shared?.name ?? folder]
  return new HubTunnel({
    address,
    lost,
    token,
    store: database.store,
    secrets: database.secrets,
    holder: hash('sha256', JSON.stringify(place), 'base64url'),
    machine: hostname().slice(0, 128),
    maxBody,
    log,
    clock,
    sources: () => messages.sources(),
    onStatus: (tunnel: TunnelStatus) => events.emit({ type: 'tunnel', tunnel, hub }),
    take: (message, payloadUrl) =>
      taken(message, (onStored) => messages.answer(message, payloadUrl, onStored)),
  })
}

/** Passes the messages of a hub to what answers requests. */
class Messages {
  readonly #core: Core
  readonly #parts: ArrivalParts
  readonly #answers: Answers
  readonly #questions = new Questions()

  constructor(core: Core, parts: ArrivalParts, answers: Answers) {
    this.#core = core
    this.#parts = parts
    this.#answers = answers
  }

  sources(): readonly HubSource[] {
    const all = [...this.#core.sources.values(), ...this.#awaited()]
    return all.map((source) => ({ name: source.name, answerWithin: this.#answerWithin(source) }))
  }

  /** @throws RelayError as `answerDelivery` and `answerQuestion` */
  async answer(message: HubMessage, payloadUrl: string, onStored: () => void): Promise<Response | undefined> {
    const { method, headers, query, path, body, id, age } = message
    const { sources, refusals, clock } = this.#core
    const named = sources.get(message.source)
    // Few senders put something behind the address.
    const source = path === '' || named?.sender.takesPath ? named : undefined
    const arrived: Arrived = {
      method,
      headers,
      query,
      ...(path !== '' && { path }),
      payloadUrl,
      async body(limit) {
        if (body.byteLength > limit) throw new RelayError('too_large', 'Request too large')
        return body
      },
      waited: { id, at: clock() - age },
      onStored,
    }
    if (source && method === 'POST') return answerDelivery(arrived, source, this.#parts)
    if (!source) {
      const awaited = this.#awaited().find(({ name }) => name === message.source)
      const request = { headers, body, query, payloadUrl }
      const handshaken = awaited && (await shakeHands(method, request, awaited, this.#parts))
      if (handshaken) return handshaken
      const [first] = sources.values()
      if (first) refusals.misdirectedAtHub(request, named ?? first, strayText(message, [...sources.values()]))
      throw new RelayError('not_found', 'Not found')
    }
    const asks = source.sender.handshakeMethods.has(method) || this.#answers.replies(source.name)
    // Only a sender that still waits is answered by a program.
    const isWaiting = asks && message.answerWithin !== undefined
    const answered = isWaiting && (await answerQuestion(arrived, source, this.#parts, this.#questions))
    if (answered) return answered
    refusals.question({ headers, body: new Uint8Array(), query, payloadUrl }, source, {
      method,
      via: 'tunnel',
    })
    throw new RelayError('method_not_allowed', 'Method not allowed')
  }

  #answerWithin({ name, sender }: Source): number | undefined {
    const reply = this.#answers.replyWithin(name)
    const handshake = sender.handshakes.length > 0 || sender.accepted ? HANDSHAKE_MS : undefined
    return reply === undefined ? handshake : reply + WAY_MS
  }

  /** Sources that are about to be added. Only the handshake that brings their secret is answered. */
  #awaited(): readonly Source[] {
    const secrets = { current: new Secret(''), previous: undefined }
    const { expected, sources } = this.#core
    const missing = [...expected.values()].filter(({ name }) => !sources.has(name))
    return missing.map(({ name, scheme }) => createSource({ name, scheme, secrets }))
  }
}

/** Splits an answer into the part for the hub and the part for the sender. Only the hub learns of a storage failure. */
function taken(message: HubMessage, answer: (onStored: () => void) => Promise<Response | undefined>): Taken {
  let onStored = (): void => {}
  const early = new Promise<void>((resolve) => (onStored = resolve))
  const answering = answer(onStored)
  const ended = answering.then(
    () => undefined,
    (error: unknown) => {
      // Anything else is a refusal for good: it would be refused again.
      if (toRelayError(error).kind === 'storage') throw error
    },
  )
  const forSender = async (): Promise<HubAnswer | undefined> => {
    const response = await answering.catch((error: unknown) => refusalOf(error))
    if (!response) return undefined
    const { status, headers } = response
    return { status, headers: [...headers], body: new Uint8Array(await response.arrayBuffer()) }
  }
  const stored = Promise.race([early, ended])
  return { stored, answer: message.answerWithin === undefined ? Promise.resolve(undefined) : forSender() }
}

/** Says why a request is to no source's address. */
function strayText({ method, source, path, query }: HubMessage, sources: readonly Source[]): string {
  const known = sources.map(({ name }) => `/${name}`).join(' or ')
  return excerpt(
    `${method} to /${source}${path}${query === undefined ? '' : '?…'}: the payload URL must end in ${known}`,
  )
}

function refusalOf(thrown: unknown): Response | undefined {
  const { kind, status, clientMessage } = toRelayError(thrown)
  // The hub has stored it, and gives it again.
  if (kind === 'storage') return undefined
  return Response.json({ error: clientMessage }, { status })
}
