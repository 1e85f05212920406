import type { Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import { explain, type ExplainParts } from './explain.js'
import type { WebhookRequest } from './intake.js'

/** What anybody may send should not keep relay busy: these bound the work to some milliseconds a second. */
const LARGEST_BODY = 262_144
const MOST_A_SECOND = 2

export interface RefusalParts extends ExplainParts {
  readonly log: Log
  readonly clock?: Clock
}

/**
 * Says on the log why a request was refused, after the answer has gone its way. Of many in a second the first are told
 * and the rest counted; a large body is not looked into.
 */
export function createRefusals({ log, clock = systemClock, ...parts }: RefusalParts) {
  let since = -Infinity
  let told = 0
  let untold = 0
  return (request: WebhookRequest): void => {
    const now = clock()
    if (now - since >= 1000 || now < since) {
      if (untold > 0) log.warn(`POST /webhook was answered 401 another ${untold} times`)
      since = now
      told = untold = 0
    }
    if (told === MOST_A_SECOND) {
      untold++
      return
    }
    told++
    setImmediate(() => log.warn(`POST /webhook was answered 401: Invalid signature (${why(request, parts)})`))
  }
}

function why(request: WebhookRequest, parts: ExplainParts): string {
  if (request.body.byteLength > LARGEST_BODY) return 'a body over 256 KiB is not looked into'
  const explanation = explain(request, parts)
  return explanation.valid ? 'valid after all' : explanation.hint
}
