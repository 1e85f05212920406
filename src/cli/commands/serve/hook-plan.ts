import { RelayError } from '../../../base/errors.js'
import { HOST_KINDS } from '../../../codehost/hosts.js'
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
 * @throws RelayError `usage` for a name that is no repository's; with `--sandbox`, whose own webhook sends everything already;
 * for `--catch-up` on Gitea, which has no log for programs
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
  const { noLog } = HOST_KINDS[options.provider].words
  if (catchUp && noLog)
    throw new RelayError(
      'usage',
      `--catch-up cannot be used with ${options.provider}, which shows programs no log of what it sent. Start without it. ${noLog.fix}`,
    )
  return { repos, user: readUser(options), catchUp }
}
