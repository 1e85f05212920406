import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod/mini'
import { RelayError } from '../base/errors.js'
import type { Header } from '../http/headers.js'
import { parseJson } from '../json/parse.js'

// Calls between a hub and its workstations. Decision 022 gives the reasons.
// Every call is a POST whose body is a frame: the length of a JSON object in four bytes, big-endian, the object, and bytes.

/** Calls of a workstation. Below {@link CALL_PATH}, which no channel's address has. */
export type HubCall = 'join' | 'open' | 'collect' | 'answer' | 'close'
export const CALL_PATH = '/hub/v1/'
/** Header of the proof of a call or an answer: an HMAC-SHA256 in base64url. */
export const CALL_PROOF = 'x-relay-hub-proof'

/**
 * Longest time in milliseconds that a hub lets a call wait for requests: less than proxies wait for an answer (60 s), and so
 * short that a half-open connection is noticed soon. An idle workstation makes six calls a minute.
 */
export const MAX_WAIT_MS = 10_000
/** Time in milliseconds without a call after which another workstation may have the channel. */
export const LEASE_MS = 10_000
/** Most requests in one answer, and the bytes of their heads and bodies, unless the first one alone is larger. */
export const MAX_BATCH = 256
export const MAX_BATCH_BYTES = 4_194_304
/** Most header lines in one answer, unless the first request alone has more: a third of the arrays that relay parses. */
const MAX_BATCH_HEADERS = 100_000
/**
 * Largest head of one request in bytes, as JSON. HTTP takes 16 KiB of address and headers: at most 6 bytes in JSON
 * for each. It takes at most 16,384 header lines: 8 bytes more in JSON for each.
 */
export const MAX_REQUEST_HEAD = 262_144
/** Longest answer of a workstation to a sender, in bytes: that of a target, 256 KiB, and its headers. */
export const MAX_ANSWER = 524_288
/** Longest time in milliseconds that a sender waits for its workstation: GitHub gives up after 10 s. */
export const MAX_ANSWER_WAIT_MS = 9000
/** Largest head of a frame in bytes: twice the heads of a batch, where one is at most {@link MAX_REQUEST_HEAD}. */
const MAX_HEAD = 8_388_608

/** Makes a frame. */
export function frame(head: object, bytes: Uint8Array = new Uint8Array()): Buffer {
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.byteLength)
  return Buffer.concat([length, json, bytes])
}

/** Reads a frame. @throws RelayError `bad_request` for anything else */
export function readFrame(whole: Uint8Array): { readonly head: unknown; readonly bytes: Buffer } {
  const all = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength)
  const length = all.length < 4 ? Infinity : all.readUInt32BE()
  if (length > MAX_HEAD || all.length < 4 + length) throw new RelayError('bad_request', 'Bad request')
  try {
    return { head: parseJson(all.subarray(4, 4 + length)), bytes: all.subarray(4 + length) }
  } catch (cause) {
    throw new RelayError('bad_request', 'Bad request', { cause })
  }
}

// Proofs

/** Digest of a workstation's key. A hub stores it to verify calls; the key cannot be computed from it. base64url. */
export function verifierOf(key: string): string {
  return hash('sha256', `hub key ${key}`, 'base64url')
}

/** HMAC of a list of texts. No text of one list can pass for another list: they are joined as JSON. */
function mac(key: string, ...texts: readonly string[]): string {
  return createHmac('sha256', Buffer.from(key, 'base64url')).update(JSON.stringify(texts)).digest('base64url')
}

/** Key of one session, which both sides compute from the nonces of its opening. base64url. */
export function sessionKey(
  verifier: string,
  nonces: { readonly theirs: string; readonly ours: string },
): string {
  return mac(verifier, 'session', nonces.theirs, nonces.ours)
}

/** Proof of a call, by the verifier for `open`, by the session's key for others. It covers every byte of the body. */
export function callProof(key: string, call: HubCall, body: Uint8Array): string {
  return mac(key, 'call', call, digest(body))
}

/** Proof of an answer, bound to the call that it answers by that call's own proof. */
export function answerProof(key: string, call: string, status: number, body: Uint8Array): string {
  return mac(key, 'answer', call, String(status), digest(body))
}

/** Compares proofs in constant time. */
export function isSameProof(expected: string, given: string | undefined): boolean {
  const [one, other] = [expected, given ?? ''].map((text) => Buffer.from(hash('sha256', text)))
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}

function digest(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url')
}

// Heads of frames

const name = z.string().check(z.maxLength(128))
/** 32 random bytes, base64url. */
const secret = z.string().check(z.regex(/^[\w-]{43}$/))
const channelId = z.string().check(z.regex(/^[\w-]{32}$/))
/** The last request that is in the workstation's journal. Its id shows that number and request belong together. */
const position = z.object({ n: z.int().check(z.positive()), id: name })

export const CALLS = {
  /** Makes a channel with an invitation, or gives the channel of a renewal this key. */
  join: z.object({ token: z.string().check(z.maxLength(256)), verifier: secret }),
  /** Begins a session. Proved by the verifier. */
  open: z.object({
    channel: channelId,
    /** Larger than in every earlier opening of the channel: a recorded opening must not open a session. */
    seq: z._default(z.int().check(z.minimum(0)), 0),
    nonce: secret,
    /** Digest that identifies the workstation, so that it can take its channel over from its earlier session. */
    holder: name,
    /** Name of the machine, for the message of another workstation. */
    machine: name,
    /** Largest body that the workstation takes, in bytes. */
    maxBody: z.int().check(z.positive()),
    /** Milliseconds that the sender of a source waits for the workstation's answer. Sources without one get 200. */
    answers: z.record(name, z.number().check(z.positive())),
  }),
  /** Acknowledges what is stored, and takes what comes next. `seq` grows with each call of a session. */
  collect: z.object({
    channel: channelId,
    session: secret,
    seq: z.int().check(z.positive()),
    stored: z.optional(position),
    /** Milliseconds to wait for a request. */
    wait: z.number().check(z.minimum(0), z.maximum(MAX_WAIT_MS)),
    /** False while the workstation cannot store: it only keeps its channel. */
    takes: z.boolean(),
  }),
  /** Answers the sender of a request, which may have stopped waiting. The bytes are the answer's body. */
  answer: z.object({
    channel: channelId,
    session: secret,
    id: name,
    status: z.int().check(z.minimum(200), z.maximum(599)),
    headers: z.array(z.tuple([z.string(), z.string()])).check(z.maxLength(100)),
  }),
  close: z.object({ channel: channelId, session: secret }),
} as const satisfies Record<HubCall, z.ZodMiniType>

export type CallHead<Call extends HubCall> = z.infer<(typeof CALLS)[Call]>

export const ANSWERS = {
  join: z.object({ channel: channelId }),
  open: z.object({ nonce: secret, session: secret }),
  collect: z.object({
    messages: z.array(
      z.object({
        n: z.int().check(z.positive()),
        id: name,
        /** Milliseconds that it has waited at the hub. A duration, since clocks need not agree. */
        age: z.number().check(z.minimum(0)),
        source: name,
        method: name,
        path: z.string(),
        query: z.optional(z.string()),
        headers: z.array(z.tuple([z.string(), z.string()])),
        size: z.int().check(z.minimum(0)),
        /** Milliseconds for which its sender still waits for an answer. */
        answerWithin: z.optional(z.number()),
      }),
    ),
  }),
  answer: z.object({}),
  close: z.object({}),
} as const satisfies Record<HubCall, z.ZodMiniType>

/**
 * Head of a proved refusal. `held`: another workstation has the channel; `ended`: the session has ended;
 * `repeated`: the number of the opening is not above `last`.
 */
export const REFUSAL = z.object({
  error: z.string(),
  why: z.enum(['held', 'ended', 'withdrawn', 'storage', 'repeated']),
  last: z.optional(z.number()),
})
export type ProvedRefusal = z.infer<typeof REFUSAL>

/** A request of a sender, as the hub stored it. */
export interface HubMessage {
  readonly n: number
  readonly id: string
  readonly age: number
  readonly source: string
  readonly method: string
  /** Rest of the address after the source: empty, or `/…`. */
  readonly path: string
  readonly query?: string | undefined
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  readonly answerWithin?: number | undefined
}

/** The first of these requests, as many as fit into one answer: at least one. */
export function batchOf(messages: readonly HubMessage[]): readonly HubMessage[] {
  let [bytes, lines] = [0, 0]
  const end = messages.findIndex((message, i) => {
    bytes += message.body.byteLength + Buffer.byteLength(JSON.stringify(headOf(message)))
    lines += message.headers.length
    return i > 0 && (bytes > MAX_BATCH_BYTES || lines > MAX_BATCH_HEADERS)
  })
  return end === -1 ? messages : messages.slice(0, end)
}

export function frameMessages(messages: readonly HubMessage[]): Buffer {
  return frame({ messages: messages.map(headOf) }, Buffer.concat(messages.map(({ body }) => body)))
}

function headOf({ body, ...head }: HubMessage): object {
  return { ...head, size: body.byteLength }
}

/** @throws RelayError `bad_request` */
export function readMessages({ head, bytes }: ReturnType<typeof readFrame>): readonly HubMessage[] {
  const { data } = ANSWERS.collect.safeParse(head)
  const total = data?.messages.reduce((sum, { size }) => sum + size, 0)
  if (!data || total !== bytes.length) throw new RelayError('bad_request', 'Bad request')
  let at = 0
  return data.messages.map(({ size, ...message }) => ({ ...message, body: bytes.subarray(at, (at += size)) }))
}
