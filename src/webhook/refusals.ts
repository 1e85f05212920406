import type { Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import { explain, type ExplainParts } from './explain.js'
import type { WebhookRequest } from './intake.js'

/** What anybody may send must not keep relay busy: to look into so many bytes takes 0.2 s at worst. */
const MOST_BYTES_A_SECOND = 262_144
const MOST_LINES_A_SECOND = 3

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
  let lines = 0
  let bytes = 0
  let untold = 0
  return (request: WebhookRequest): void => {
    const now = clock()
    if (now - since >= 1000 || now < since) {
      if (untold > 0) log.warn(`and ${untold} more were refused in that second`)
      since = now
      lines = bytes = untold = 0
    }
    if (lines === MOST_LINES_A_SECOND) {
      untold++
      return
    }
    lines++
    bytes += request.body.byteLength
    const why = bytes > MOST_BYTES_A_SECOND ? TOO_MUCH : undefined
    setImmediate(() => log.warn(`a delivery was refused: ${why ?? reason(request, parts)}`))
  }
}

const TOO_MUCH = 'its signature does not fit, and it is too large to look into'

function reason(request: WebhookRequest, parts: ExplainParts): string {
  const explanation = explain(request, parts)
  return explanation.valid ? 'its signature fits' : explanation.hint
}
