// The worker thread that reads large messages, one at a time. `large.ts` starts it and limits its time and memory.
import { parentPort } from 'node:worker_threads'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { indexHeaders } from '../webhook/headers.js'
import type { WebhookRequest } from '../webhook/intake.js'
import type { RestoreMethod } from '../webhook/restore/restore.js'
import { messageText, type RawEvent } from './events.js'
import { type Message, readMessage } from './message.js'
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
  | { readonly refused: string; readonly message: Message | undefined }
  | undefined

/** Characters or bytes of the body of a refused message that are passed on: 256 KiB. */
const MAX_SHOWN = 262_144

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
    scheme: { formSignature },
    maxBody,
  })
  if ('refused' in unpacked) return { refused: await unpacked.refused(), message: startOf(message) }
  return unpacked
}

/** The message with the start of its body, which is enough to show. */
function startOf({ headers, body: { json, raw } }: Message): Message {
  const start = raw?.subarray(0, MAX_SHOWN)
  return { headers, body: { json: json?.slice(0, MAX_SHOWN), raw: start && new Uint8Array(start) } }
}

function toOutcome(error: unknown): Outcome {
  if (error instanceof RelayError) return { refused: error.message, message: undefined }
  throw error
}
