// The worker thread that reads large messages, one at a time. `large.ts` starts it and limits its time and memory.
import { parentPort } from 'node:worker_threads'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { indexHeaders } from '../http/headers.js'
import { codeHostOf } from '../providers/code-hosts.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { REFUSED_LIMITS } from '../webhook/refused.js'
import type { RestoreMethod } from '../webhook/restore/restore.js'
import { messageText, type RawEvent } from './events.js'
import { readMessage } from './message.js'
import { unpack, type UnpackParts } from './unpack.js'

/** A large message and the settings needed to read it. */
export interface Task {
  readonly event: RawEvent
  readonly secrets: { readonly current: string; readonly previous: string | undefined }
  readonly formSignature: UnpackParts['scheme']['formSignature']
  /** Bytes. */
  readonly maxBody: number
}

/** The request in the message, or why it was refused; undefined for a message that is not a request. */
export type Outcome =
  | { readonly request: WebhookRequest; readonly how: RestoreMethod }
  | {
      /** Why, and the request as far as it could be read: of its body, the start. */
      readonly refused: string
      readonly kind: 'invalid_signature' | 'invalid_event' | 'too_large'
      readonly request?: WebhookRequest
    }
  | undefined

parentPort?.on('message', (task: Task) => void handle(task))

async function handle(task: Task): Promise<void> {
  const outcome = await read(task).catch(toOutcome)
  if (!outcome || 'refused' in outcome) {
    parentPort?.postMessage(outcome, [])
    return
  }
  // A copy in a buffer of its own, so that it can be transferred: Node shares the buffers of small bodies.
  const body = new Uint8Array(outcome.request.body)
  parentPort?.postMessage({ ...outcome, request: { ...outcome.request, body } }, [body.buffer])
}

async function read({ event, secrets, formSignature, maxBody }: Task): Promise<Outcome> {
  const text = messageText(event)
  const message = text === undefined ? undefined : readMessage(text)
  if (!message) return undefined
  const unpacked = await unpack(message, indexHeaders(message.headers), {
    secrets: {
      current: new Secret(secrets.current),
      previous: secrets.previous === undefined ? undefined : new Secret(secrets.previous),
    },
    scheme: codeHostOf(formSignature === 'payload' ? 'gitea' : 'github').webhook,
    maxBody,
  })
  if (!('refused' in unpacked)) return unpacked
  const { headers, body } = unpacked.request ?? { headers: [], body: new Uint8Array() }
  const request = { headers, body: new Uint8Array(body.subarray(0, REFUSED_LIMITS.body)) }
  if (unpacked.refused instanceof RelayError) return { ...toOutcome(unpacked.refused), request }
  return { refused: await unpacked.refused.reason(), kind: 'invalid_signature', request }
}

/** @throws the error unless it means that the message is refused. */
function toOutcome(error: unknown): Exclude<Outcome, undefined | { how: unknown }> {
  if (!(error instanceof RelayError)) throw error
  return {
    refused: error.cause instanceof Error ? error.cause.message : error.message,
    kind: error.kind === 'too_large' ? 'too_large' : 'invalid_event',
  }
}
