import type { Log } from '../base/log.js'
import { createSparing } from '../base/sparing.js'
import { explain, type ExplainParts } from './explain.js'
import type { WebhookRequest } from './intake.js'

export interface RefusalParts extends ExplainParts {
  readonly log: Log
}

/**
 * Says on the log why a request was refused, after the answer has gone its way. Of many in a second the first are told
 * and the rest counted.
 */
export function createRefusals({ log, ...parts }: RefusalParts) {
  const sparingly = createSparing((count) => log.warn(`another ${count} deliveries were refused`))
  return (request: WebhookRequest): void =>
    sparingly(() => setImmediate(() => log.warn(`a delivery was refused: ${refusalHint(request, parts)}`)))
}

/** 256 KiB. To look into so much, which anybody may send, takes a tenth of a second at worst. */
const LARGEST_EXPLAINED = 262_144

/** Why a request is refused, in a line for a person; a large body is not looked into. */
export function refusalHint(request: WebhookRequest, parts: ExplainParts): string {
  if (request.body.byteLength > LARGEST_EXPLAINED)
    return 'its signature does not fit, and it is too large to look into'
  const explanation = explain(request, parts)
  return explanation.valid ? 'its signature fits' : explanation.hint
}
