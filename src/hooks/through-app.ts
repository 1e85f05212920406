import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Summary } from '../journal/types.js'
import type { Journal } from '../journal/journal.js'
import type { Provider, RepoTarget } from '../providers/provider.js'

/** Milliseconds: 1 day. An App's webhook that was quiet for longer may have been turned off. */
const RECENT_MS = 86_400_000
/** Newest deliveries of the repository that are looked at: an App's come between those of its own hooks. */
const MAX_LOOKED_AT = 50
/** Says what a hook belongs to: `repository`, `organization`, `integration` (https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers). */
const TARGET_TYPE = 'x-github-hook-installation-target-type'
/** The sandbox's own webhook, which like an App's sends the events of every repository. */
const SANDBOX_HOOK_ID = '1'

/** The App of this profile, whose own webhook sends here. */
export interface CoveringApp {
  readonly slug: string
  /** Whether it sends the deliveries of a repository. */
  isInstalledOn(repo: RepoTarget, options?: Cancellable): Promise<boolean>
}

/** What shows whether an App sends a repository's deliveries: the profile's own App if there is one, and the journal. */
export interface AppEvidence {
  readonly provider: Pick<Provider, 'name'>
  readonly journal: Pick<Journal, 'select'>
  readonly findApp?: () => Promise<CoveringApp | undefined>
}

/**
 * Refuses a repository whose deliveries come through an App, because a hook of its own would send each a second time. `hasHook`: whether it
 * has one already.
 * @throws RelayError `conflict`; `storage`; as the calls of the App
 */
export async function refuseApp(
  { provider: { name }, journal, findApp }: AppEvidence,
  { owner, repo }: RepoTarget,
  { hasHook, signal }: Cancellable & { readonly hasHook: boolean },
  now = Date.now(),
): Promise<void> {
  const fullName = `${owner}/${repo}`
  const fix = hasHook ? `Remove its hook with relay hook remove ${fullName}` : 'Use no hook there'
  const app = await findApp?.()
  if (await app?.isInstalledOn({ owner, repo }, { signal }))
    throw new RelayError(
      'conflict',
      `The App ${app?.slug} is installed on ${fullName} and sends its deliveries here, so a hook would send each twice. ${fix}`,
    )
  const filter = { repo: fullName, since: now - RECENT_MS, last: MAX_LOOKED_AT }
  for await (const delivery of journal.select(filter))
    if (delivery.provider === name && isOfApp(delivery))
      throw new RelayError(
        'conflict',
        `The deliveries of ${fullName} already come through ${whose(name)} (#${delivery.n}), so a hook would send each twice. ${fix}, or turn the other off and try again a day later`,
      )
}

function isOfApp({ provider, hookId, headers }: Summary): boolean {
  if (provider === 'sandbox' && hookId === SANDBOX_HOOK_ID) return true
  return headers.some(([name, value]) => name.toLowerCase() === TARGET_TYPE && value === 'integration')
}

function whose(name: Provider['name']): string {
  return name === 'sandbox' ? "an App or the sandbox's own webhook" : 'an App'
}
