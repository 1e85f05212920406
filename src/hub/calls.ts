import { randomBytes } from 'node:crypto'
import type { Context } from 'hono'
import { RelayError, toRelayError } from '../base/errors.js'
import { type HttpEnv, readBody } from '../http/body.js'
import type { Hub } from './hub.js'
import {
  answerProof,
  callProof,
  type CallHead,
  CALLS,
  frame,
  frameMessages,
  type HubCall,
  CALL_PROOF,
  isSameProof,
  MAX_ANSWER,
  readFrame,
  type ProvedRefusal,
} from './protocol.js'
import type { Channel, Session } from './records.js'

/** Largest head of a call in bytes: the sources of a workstation, or the headers of an answer. */
const MAX_CALL_HEAD = 65_536
/** Verifier of no key, so that a channel that does not exist takes as long as a wrong key. */
const NO_VERIFIER = randomBytes(32).toString('base64url')
/** Interval in milliseconds at which a session is prolonged while its workstation still reads an answer. */
const TOUCH_MS = 5000

/** An answer of the hub, which its workstation verifies with the key. */
interface Proved {
  readonly status: 200 | 409 | 410 | 503
  readonly body: Buffer
}

/**
 * Answers the calls of workstations. A call without proof of a channel's key gets 404, like any unknown address. Other
 * refusals carry a proof, so that a workstation believes them.
 */
export class WorkstationCalls {
  readonly #hub: Hub
  readonly #stopped: AbortSignal

  constructor(hub: Hub, stopped: AbortSignal) {
    this.#hub = hub
    this.#stopped = stopped
  }

  async answer(c: Context<HttpEnv>, name: string): Promise<Response> {
    if (!isCall(name)) throw unknown()
    const whole = await readBody(c, MAX_CALL_HEAD + MAX_ANSWER)
    const { head, bytes } = readFrame(whole)
    const given = c.req.header(CALL_PROOF)
    const prove = (key: string) => isSameProof(callProof(key, name, whole), given)
    const call = { c, head, bytes, prove, given: given ?? '' }
    const answers = {
      join: () => this.#join(call),
      open: () => this.#open(call),
      collect: () => this.#collect(call),
      answer: () => this.#pass(call),
      close: () => this.#close(call),
    } as const satisfies Record<HubCall, () => Promise<Response>>
    return answers[name]()
  }

  async #join({ head, prove, given }: Call): Promise<Response> {
    const { token, verifier } = read('join', head)
    if (!prove(verifier)) throw unknown()
    const { id } = await this.#hub.records.join(token, verifier)
    return proved(verifier, given, { status: 200, body: frame({ channel: id }) })
  }

  async #open({ head, prove, given }: Call): Promise<Response> {
    const { channel: id, ...wanted } = read('open', head)
    const channel = await this.#hub.records.channel(id)
    if (!prove(channel?.verifier ?? NO_VERIFIER) || !channel) throw unknown()
    const answer = async (): Promise<Proved> => {
      if (channel.isWithdrawn) return WITHDRAWN
      const opened = await this.#hub.records.open(channel, wanted)
      if ('heldBy' in opened) return held(opened.heldBy)
      if ('last' in opened) return repeated(opened.last)
      const { session, nonce } = opened
      return { status: 200, body: frame({ nonce, session: session.id }) }
    }
    return proved(channel.verifier, given, await answer().catch(failed))
  }

  async #collect({ c, head, prove, given }: Call): Promise<Response> {
    const { channel: id, session: sessionId, seq, stored, wait, takes } = read('collect', head)
    const { session, channel } = await this.#proven(id, sessionId, prove)
    const left = new AbortController()
    using connection = watch(c, left)
    const answer = async (): Promise<Proved> => {
      if (channel.isWithdrawn) return WITHDRAWN
      const { records } = this.#hub
      if (!(await records.touch(id, session, seq))) return ENDED
      if (stored) await this.#hub.stored(id, stored)
      let why: Proved | undefined
      const isOpen = async (): Promise<boolean> => {
        const [now, current] = await Promise.all([records.session(id), records.channel(id)])
        if (current?.isWithdrawn !== false) why = WITHDRAWN
        else if (now?.id !== session.id) why = ENDED
        return !why
      }
      const signal = AbortSignal.any([left.signal, this.#stopped])
      const messages = await this.#hub.next(id, { wait, takes, signal, isOpen })
      return why ?? { status: 200, body: frameMessages(messages) }
    }
    const made = await answer().catch(failed)
    // A workstation that has gone leaves the channel to another.
    if (left.signal.aborted) await this.#hub.records.end(id, session).catch(() => {})
    connection.onSlow(() => void this.#hub.records.touch(id, session).catch(() => {}))
    return proved(session.key, given, made)
  }

  async #pass({ head, bytes, prove, given }: Call): Promise<Response> {
    const { channel: id, session: sessionId, id: request, status, headers } = read('answer', head)
    const { session } = await this.#proven(id, sessionId, prove)
    const answer = async (): Promise<Proved> => {
      await this.#hub.exchanges.answer(request, { status, headers, body: bytes })
      return DONE
    }
    return proved(session.key, given, await answer().catch(failed))
  }

  async #close({ head, prove, given }: Call): Promise<Response> {
    const { channel: id, session: sessionId } = read('close', head)
    const { session } = await this.#proven(id, sessionId, prove)
    const answer = async (): Promise<Proved> => {
      await this.#hub.records.end(id, session)
      return DONE
    }
    return proved(session.key, given, await answer().catch(failed))
  }

  /** Finds the session that proves a call. @throws RelayError `not_found` for none */
  async #proven(
    id: string,
    sessionId: string,
    prove: Call['prove'],
  ): Promise<{ readonly session: Session; readonly channel: Channel }> {
    const { records } = this.#hub
    const [session, channel] = await Promise.all([records.session(id), records.channel(id)])
    if (!prove(session?.key ?? NO_VERIFIER) || session?.id !== sessionId || !channel) throw unknown()
    return { session, channel }
  }
}

interface Call {
  readonly c: Context<HttpEnv>
  readonly head: unknown
  readonly bytes: Uint8Array
  /** True if the call is proved by this key. */
  readonly prove: (key: string) => boolean
  /** Proof of the call, to which that of the answer is bound. */
  readonly given: string
}

function isCall(name: string): name is HubCall {
  return Object.hasOwn(CALLS, name)
}

/** @throws RelayError `bad_request` */
function read<Name extends HubCall>(name: Name, head: unknown): CallHead<Name> {
  const { data } = CALLS[name].safeParse(head)
  if (!data) throw new RelayError('bad_request', 'Bad request')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript does not follow the index
  return data as CallHead<Name>
}

/** The answer for any address that does not exist. */
function unknown(): RelayError {
  return new RelayError('not_found', 'Not found')
}

function refused(status: 409 | 410 | 503, refusal: ProvedRefusal): Proved {
  return { status, body: frame(refusal) }
}

const DONE: Proved = { status: 200, body: frame({}) }
const ENDED = refused(409, { why: 'ended', error: 'another session of this workstation has begun' })
const WITHDRAWN = refused(410, {
  why: 'withdrawn',
  error: "the hub's operator has withdrawn the key of this channel",
})

function repeated(last: number): Proved {
  return refused(409, { why: 'repeated', last, error: 'this opening of a session was there before' })
}

function held({ machine, since }: Pick<Session, 'machine' | 'since'>): Proved {
  const from = new Date(since).toISOString().slice(0, 16).replace('T', ' ')
  return refused(409, {
    why: 'held',
    error: `another workstation receives from this channel: ${machine}, since ${from} UTC`,
  })
}

/** Answers a storage failure with a refusal that carries a proof. @throws any other error */
function failed(error: unknown): Proved {
  const { kind } = toRelayError(error)
  if (kind !== 'storage') throw error
  return refused(503, { why: 'storage', error: 'the storage of the hub fails' })
}

function proved(key: string, call: string, { status, body }: Proved): Response {
  return new Response(new Uint8Array(body), {
    status,
    headers: {
      // Nothing between hub and workstation may keep the answer, or change a byte.
      'Cache-Control': 'no-store, no-transform',
      'Content-Type': 'application/octet-stream',
      [CALL_PROOF]: answerProof(key, call, status, body),
    },
  })
}

/** Watches the connection of a call: `left` aborts if it closes before the answer is made. */
function watch({ env }: Context<HttpEnv>, left: AbortController) {
  // A request made in-process has no connection.
  const outgoing = env?.outgoing
  const close = (): void => left.abort()
  outgoing?.once('close', close)
  return {
    /** Calls `touch` again and again until the answer has been read. */
    onSlow(touch: () => void): void {
      if (!outgoing || outgoing.closed) return
      const timer = setInterval(touch, TOUCH_MS).unref()
      outgoing.once('close', () => clearInterval(timer))
    },
    [Symbol.dispose]: () => void outgoing?.off('close', close),
  }
}
