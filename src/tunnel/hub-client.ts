import { randomBytes } from 'node:crypto'
import type { z } from 'zod/mini'
import { withTimeLimit, isTimeout } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { readBounded } from '../base/bytes.js'
import {
  ANSWERS,
  answerProof,
  callProof,
  type CallHead,
  CALL_PATH,
  frame,
  type HubCall,
  type HubMessage,
  CALL_PROOF,
  isSameProof,
  MAX_BATCH_BYTES,
  readFrame,
  readMessages,
  REFUSAL,
  type ProvedRefusal,
  sessionKey,
  verifierOf,
} from '../hub/protocol.js'
import { MAX_MAX_BODY } from '../base/settings.js'
import { reuseConnections, type SendOnce, StaleConnectionError } from '../net/client.js'
import { redirectNote, tunnelFailure, tunnelRefusal } from './channel.js'
import { TunnelRefusal } from './reconnect.js'

/** Time in milliseconds for which an idle connection is used again: less than any server keeps one, Node's 5 s. */
const KEEP_ALIVE_MS = 4000
/** Time limit of a call besides what the hub waits, in milliseconds. */
const CALL_MS = 15_000
/** Longest answer in bytes: one body of the largest size, or a batch; and the headers of all its requests. */
const MAX_ANSWER_BYTES = MAX_MAX_BODY + MAX_BATCH_BYTES + 8_388_608

const [FORBIDDEN, NOT_FOUND] = [403, 404]
/** Numbers that are tried for an opening, while other workstations with the key open sessions. */
const MAX_OPENINGS = 3

/** Instruction for the user: how to get an invitation from the operator's command, and use it. */
const useInvitation = (command: string): string =>
  `ask the hub's operator for relay hub ${command}, set RELAY_HUB_TOKEN to the invitation that it prints, and restart relay`
export const ASK_FOR_INVITATION = useInvitation('invite')
const ASK_FOR_KEY = useInvitation('renew')

const FIXES: Readonly<Record<ProvedRefusal['why'], string | undefined>> = {
  withdrawn: ASK_FOR_KEY,
  held: 'stop relay on the other workstation, or set RELAY_HUB_TOKEN to another invitation here, which makes another channel, and restart relay',
  storage: 'the operator of the hub frees space on its disk; relay retries by itself',
  ended: undefined,
  repeated: undefined,
}

/** A refusal that the hub has proved. */
export class HubRefusal extends TunnelRefusal {
  readonly why: ProvedRefusal['why']
  /** With `repeated`: number of the last opening. */
  readonly last: number | undefined

  constructor({ why, error, last }: ProvedRefusal, status: number) {
    super(error, status, { fix: FIXES[why] })
    this.why = why
    this.last = last
  }
}

/** A hub that does not know the channel or its key: 404, as for any address that it does not have. */
export class UnknownChannel extends TunnelRefusal {
  constructor() {
    super(
      'the hub does not know this channel and its key. Its operator gives the channel another key with relay hub renew',
      NOT_FOUND,
      { fix: ASK_FOR_KEY },
    )
  }
}

/** A proved answer that this relay cannot read. Another attempt does not change it. */
class UnreadableAnswer extends TunnelRefusal {
  constructor(cause?: unknown) {
    super('the hub answers in a form that this relay cannot read: it may be of another version', 200, {
      fix: 'install the same version of relay here and at the hub, and restart both',
      isLasting: true,
    })
    this.cause = cause
  }
}

/** @throws UnreadableAnswer */
function readable<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new UnreadableAnswer(cause)
  }
}

/** The calls of a workstation to one hub. */
export class HubClient {
  readonly #url: string
  /** One connection for all calls of a session, and another one while a sender is answered. */
  #send: SendOnce
  /** Number of the last opening of a session. */
  #opened = 0

  constructor(url: string) {
    this.#url = url
    this.#send = reuseConnections(url, KEEP_ALIVE_MS)
  }

  /**
   * Uses an invitation: the key is of the channel from then on.
   * @throws RelayError `provider_failed` with the reason
   */
  async join(token: string, key: string, signal: AbortSignal): Promise<string> {
    const verifier = verifierOf(key)
    const { head } = await this.#call('join', { token, verifier }, { key: verifier, signal })
    return read('join', head).channel
  }

  /**
   * Begins a session with a channel. The hub proves that it knows the channel's key, too.
   * @throws HubRefusal, UnknownChannel; RelayError `provider_failed` with the reason
   */
  async open(key: string, wanted: WantedSession, signal: AbortSignal): Promise<HubSession> {
    // Those of a session before may be dead.
    this.#send = reuseConnections(this.#url, KEEP_ALIVE_MS)
    const verifier = verifierOf(key)
    const theirs = randomBytes(32).toString('base64url')
    const { head } = await this.#callOpen({ ...wanted, nonce: theirs }, { key: verifier, signal })
    const { nonce: ours, session } = read('open', head)
    const own = sessionKey(verifier, { theirs, ours })
    const { channel } = wanted
    let seq = 0
    return {
      collect: ({ limit, ...asked }) =>
        again(async () => {
          const body = { channel, session, seq: ++seq, ...asked }
          const call = { key: own, signal: limit, wait: asked.wait }
          const answer = await this.#call('collect', body, call)
          return readable(() => readMessages(answer))
        }),
      answer: ({ bytes, ...answer }, limit) =>
        again(async () => {
          await this.#call('answer', { channel, session, ...answer }, { key: own, signal: limit, bytes })
        }),
      close: (limit) =>
        again(async () => {
          await this.#call('close', { channel, session }, { key: own, signal: limit })
        }),
    }
  }

  /**
   * Calls `open` with the time as its number, which is above those before without a record of them; or, where another
   * workstation with the key has a clock that is ahead, with the next one.
   */
  async #callOpen(
    head: object,
    options: { readonly key: string; readonly signal: AbortSignal },
  ): Promise<ReturnType<typeof readFrame>> {
    this.#opened = Math.max(Date.now(), this.#opened + 1)
    for (let tries = 1; ; tries++)
      try {
        return await this.#call('open', { ...head, seq: this.#opened }, options)
      } catch (error) {
        const last = error instanceof HubRefusal && error.why === 'repeated' ? error.last : undefined
        if (last === undefined || tries === MAX_OPENINGS) throw error
        this.#opened = last + 1
      }
  }

  async #call(
    name: HubCall,
    head: object,
    { key, signal, bytes, wait = 0 }: { key: string; signal: AbortSignal; bytes?: Uint8Array; wait?: number },
  ): Promise<ReturnType<typeof readFrame>> {
    const body = frame(head, bytes)
    const proof = callProof(key, name, body)
    const headers = { 'content-type': 'application/octet-stream', [CALL_PROOF]: proof }
    const url = this.#url + CALL_PATH + name
    const send = (limited: AbortSignal) => this.#send(url, { method: 'POST', headers, body, signal: limited })
    const response = await withTimeLimit(CALL_MS + wait, signal, send).catch((error: unknown) => {
      if (error instanceof StaleConnectionError) throw error
      if (!isTimeout(error)) throw tunnelFailure(error)
      throw new RelayError('provider_failed', `no answer within ${(CALL_MS + wait) / 1000} s`)
    })
    try {
      const given = response.header(CALL_PROOF)
      if (given === undefined) throw this.#unproved(response, url, name)
      const whole = await readBounded(slowly(response.body, signal), MAX_ANSWER_BYTES)
      if (!isSameProof(answerProof(key, proof, response.status, whole), given))
        throw new RelayError('provider_failed', `${this.#url} does not prove that it has this channel`)
      const answer = readable(() => readFrame(whole))
      if (response.status === 200) return answer
      const { data } = REFUSAL.safeParse(answer.head)
      throw data
        ? new HubRefusal(data, response.status)
        : tunnelRefusal(`the hub answers ${response.status}`, response)
    } catch (error) {
      throw tunnelFailure(error)
    } finally {
      response.discard()
    }
  }

  #unproved(response: Awaited<ReturnType<SendOnce>>, url: string, name: HubCall): RelayError {
    const { status } = response
    if (name === 'join' && status === FORBIDDEN)
      return new TunnelRefusal(
        'the hub does not take this invitation: it is unknown, used up or expired. Its operator makes another with relay hub invite',
        FORBIDDEN,
        { fix: ASK_FOR_INVITATION },
      )
    if (status === NOT_FOUND && name !== 'join') return new UnknownChannel()
    if (status === NOT_FOUND) return tunnelRefusal('there is no hub at this address', response)
    return tunnelRefusal(`the hub answers ${status}${redirectNote(response, url)}`, response)
  }
}

/** Makes a call of a session once more, on another connection, if the server has just closed that of the first. */
async function again<Result>(call: () => Promise<Result>): Promise<Result> {
  const rejected = (error: unknown): Promise<Result> => {
    if (!(error instanceof StaleConnectionError)) throw error
    return call()
  }
  return call()
    .catch(rejected)
    .catch((error: unknown) => {
      throw tunnelFailure(error)
    })
}

/** Details that a workstation sends about itself when it opens a session. */
type WantedSession = Omit<CallHead<'open'>, 'nonce' | 'seq'>

/** A session with a channel. */
export interface HubSession {
  /**
   * Acknowledges, and takes what comes next. @throws as `open`; `ended` if another session has begun
   */
  collect(
    asked: Pick<CallHead<'collect'>, 'stored' | 'wait' | 'takes'> & { readonly limit: AbortSignal },
  ): Promise<readonly HubMessage[]>
  /** Answers a sender. The hub drops the answer if the sender has stopped waiting. */
  answer(
    answer: Pick<CallHead<'answer'>, 'id' | 'status' | 'headers'> & { readonly bytes: Uint8Array },
    limit: AbortSignal,
  ): Promise<void>
  close(limit: AbortSignal): Promise<void>
}

/** Time without a byte of an answer that has begun, after which the connection is lost. Milliseconds. */
const SILENCE_MS = 20_000

/** Reads an answer of any length over any line, as long as something arrives. */
async function* slowly(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  for (;;) {
    const next = await withTimeLimit(SILENCE_MS, signal, (limited) => raced(chunks.next(), limited))
    if (next.done === true) return
    yield next.value
  }
}

async function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function read<Name extends 'join' | 'open'>(name: Name, head: unknown): z.infer<(typeof ANSWERS)[Name]> {
  const { data } = ANSWERS[name].safeParse(head)
  if (!data) throw new UnreadableAnswer()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript does not follow the index
  return data as z.infer<(typeof ANSWERS)[Name]>
}
