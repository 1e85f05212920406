import type { WebhookSecrets } from '../../base/settings.js'
import { type Fixture, fixtureBody, fixtureLines } from '../../journal/fixture.js'
import { schemeOf } from '../../replay/scheme.js'
import { explain } from '../../webhook/explain.js'
import type { Explanation } from '../../webhook/explanation.js'

/** Whether a fixture is signed as its provider signs, with one of the secrets. Its headers count as they stand. */
export function explainFixture(fixture: Fixture, secrets: WebhookSecrets): Explanation {
  const request = { headers: fixtureLines(fixture), body: fixtureBody(fixture) }
  return explain(request, { secrets, scheme: schemeOf(fixture.provider) })
}
