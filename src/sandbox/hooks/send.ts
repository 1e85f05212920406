import { createHmac } from 'node:crypto'
import { isTimeout } from '../../base/time-limit.js'
import { describeConnectionError } from '../../net/errors.js'
import { DeliverySender, type DeliveryResponse } from '../../net/delivery-sender.js'
import { WEBHOOK } from '../../codehost/github/webhook.js'
import type { ContentType, Hook } from './hook.js'

/** GitHub gives up on an answer after 10 s (https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks). */
const TIME_LIMIT_MS = 10_000
/** Version of GitHub Enterprise Server in the headers of deliveries. */
const SERVER_VERSION = '3.19.0'

/** What is sent, and sent again by a redelivery: the same bytes under the same GUID. */
export interface Message {
  /** Shared by all hooks that get the event. */
  readonly guid: string
  readonly event: string
  readonly action: string | null
  readonly repositoryId: number | null
  /** Installation of the App whose webhook it is. */
  readonly installationId: number | null
  /** JSON text. */
  readonly payload: string
  readonly contentType: ContentType
}

/** How the receiver answered, in the words of GitHub's log. */
export interface Outcome {
  readonly status: string
  readonly statusCode: number
  readonly requestHeaders: Readonly<Record<string, string>>
  /** Undefined: there was no HTTP response. */
  readonly response:
    | { readonly headers: Readonly<Record<string, string>>; readonly payload: string }
    | undefined
  /** Why it counts as failed, for people; undefined if it succeeded. */
  readonly failure: string | undefined
}

/**
 * Sends one delivery, once: a code host does not retry by itself. A failure is an outcome.
 * @throws the signal's reason once `stop` aborts.
 */
export async function send(hook: Hook, message: Message, host: string, stop: AbortSignal): Promise<Outcome> {
  const body = bodyOf(message)
  const requestHeaders = headersOf(hook, message, host, body)
  try {
    return { requestHeaders, ...answered(await post(hook.config.url(), requestHeaders, body, stop)) }
  } catch (error) {
    stop.throwIfAborted()
    return { requestHeaders, ...unanswered(error), response: undefined }
  }
}

function bodyOf({ contentType, payload }: Message): Uint8Array {
  return Buffer.from(contentType === 'json' ? payload : new URLSearchParams({ payload }).toString())
}

/** Headers of a delivery (https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers). */
function headersOf(hook: Hook, message: Message, host: string, body: Uint8Array): Record<string, string> {
  const { secret } = hook.config
  return {
    ...WEBHOOK.headers(message.event, message.guid, body, secret),
    'Content-Type': message.contentType === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
    'X-GitHub-Enterprise-Host': host,
    'X-GitHub-Enterprise-Version': SERVER_VERSION,
    'X-GitHub-Hook-ID': String(hook.id),
    'X-GitHub-Hook-Installation-Target-ID': String(hook.app?.id ?? message.repositoryId),
    'X-GitHub-Hook-Installation-Target-Type': hook.app ? 'integration' : 'repository',
    ...(secret && {
      'X-Hub-Signature': `sha1=${createHmac('sha1', secret.reveal()).update(body).digest('hex')}`,
    }),
  }
}

/** On a connection of its own, so that it is never sent a second time. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: Uint8Array,
  stop: AbortSignal,
): Promise<DeliveryResponse> {
  await using sender = new DeliverySender(url, TIME_LIMIT_MS)
  return await sender.post(Object.entries(headers), body, stop)
}

function answered({ status, header, start }: DeliveryResponse): Omit<Outcome, 'requestHeaders'> {
  const isOk = status >= 200 && status <= 299
  const type = header('content-type')
  return {
    status: isOk ? 'OK' : `Invalid HTTP Response: ${status}`,
    statusCode: status,
    response: {
      headers: type === undefined ? {} : { 'Content-Type': type },
      payload: Buffer.from(start).toString(),
    },
    failure: isOk ? undefined : `it was answered ${status}`,
  }
}

/** GitHub's log shows a receiver that did not answer with a status code of its own. */
function unanswered(error: unknown): Pick<Outcome, 'status' | 'statusCode' | 'failure'> {
  const failure = describeConnectionError(error)
  return isTimeout(error)
    ? { status: 'timed out', statusCode: 504, failure }
    : { status: 'failed to connect to host', statusCode: 502, failure }
}
