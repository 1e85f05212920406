import type { HttpEnv } from '../../http/env.js'
import type { Faults } from '../faults.js'
import type { Grant } from '../oauth/tokens.js'
import type { View } from '../resources/view.js'
import type { Webhooks } from '../webhooks.js'

/** A route behind the bearer check finds whose token it is in `c.get('grant')`. */
export type RestEnv = HttpEnv & { Variables: { grant: Grant } }

/** What every group of REST routes works with. */
export interface RestParts {
  readonly view: View
  readonly faults: Faults
  readonly webhooks: Webhooks
}
