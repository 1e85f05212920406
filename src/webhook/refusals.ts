import { setImmediate } from 'node:timers/promises'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { inTurns } from '../base/turns.js'
import type { WebhookScheme } from '../providers/provider.js'
import { explainSteps, type ExplainParts } from './explain.js'
import { indexHeaders } from './headers.js'
import { claimedIdentity } from './identity.js'
import type { WebhookRequest } from './intake.js'

export interface RefusalParts extends ExplainParts {
  readonly log: Log
  readonly scheme: WebhookScheme
}

const REFUSED = 'answered 401: Invalid signature'

/** Logs why a request was refused, after the answer has been sent. Explains only the first of many in a second. */
export function createRefusals({ log, ...parts }: RefusalParts) {
  const throttle = createLogThrottle(log)
  const explain = async (request: WebhookRequest): Promise<void> => {
    await setImmediate()
    log.warn(await refusalLine(request, parts))
  }
  return (request: WebhookRequest): void => throttle(REFUSED, () => void explain(request))
}

async function refusalLine(request: WebhookRequest, parts: Omit<RefusalParts, 'log'>): Promise<string> {
  const claim = claimedIdentity(indexHeaders(request.headers), parts.scheme)
  return `POST /webhook was answered 401: ${await refusalHint(request, parts)} (${claim})`
}

/**
 * Bytes: 64 KiB, which nearly every delivery fits. Anybody may send a body that is slow on purpose. Its longest step
 * writes and hashes one encoding, which takes 20 ms for 64 KiB and 60 ms for 256 KiB.
 */
const MAX_EXPLAINED = 65_536

/** Why a request is refused, in one line for the user. Yields to the event loop; does not analyse a large body. */
export async function refusalHint(request: WebhookRequest, parts: ExplainParts): Promise<string> {
  if (request.body.byteLength > MAX_EXPLAINED)
    return 'its signature does not match, and its body is too large to analyse'
  const explanation = await inTurns(explainSteps(request, parts))
  return explanation.valid ? 'its signature matches' : explanation.hint
}
