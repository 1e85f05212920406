import { RelayError } from '../../../base/errors.js'
import type { HookPlan } from '../../../serve/hooks.js'
import { parseRepo } from '../../session/repo.js'
import { readUser } from '../../session/user.js'
import type { OptionValues } from '../../settings/options.js'

export interface HookFlags {
  readonly sandbox?: unknown
  readonly hook?: readonly string[]
  readonly catchUp?: boolean
}

/**
 * The hooks that `serve` has, undefined for none.
 * @throws RelayError `usage` for a name that is no repository's, and with `--sandbox`, whose own webhook sends everything already.
 */
export function readHookPlan(
  { sandbox, hook = [], catchUp = false }: HookFlags,
  options: OptionValues,
): HookPlan | undefined {
  const repos = hook.map(parseRepo)
  if (repos.length === 0 && !catchUp) return undefined
  if (sandbox)
    throw new RelayError(
      'usage',
      `${catchUp ? '--catch-up' : '--hook'} cannot be used with --sandbox: the sandbox's own webhook sends every delivery already, and its log ends with it. Use the sandbox of another relay, with --provider sandbox and --provider-url`,
    )
  return { repos, user: readUser(options), catchUp }
}
