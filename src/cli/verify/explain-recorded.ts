import type { WebhookSecrets } from '../../base/settings.js'
import type { Recorded } from '../../journal/fixture.js'
import { schemeOf } from '../../replay/scheme.js'
import { explain } from '../../webhook/explain.js'
import type { Explanation } from '../../webhook/explanation.js'

/** Whether it is signed as its provider signs, with one of the secrets. Its headers count as they stand. */
export function explainRecorded(recorded: Recorded, secrets: WebhookSecrets): Explanation {
  return explain(recorded, { secrets, scheme: schemeOf(recorded.provider) })
}
