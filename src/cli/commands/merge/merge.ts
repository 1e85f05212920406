import { RelayError } from '../../../base/errors.js'
import type { MergeMethod } from '../../../providers/provider.js'
import type { Context } from '../../context.js'
import { act, type ActionFlags } from '../../session/action.js'
import { formatTarget, parseTarget, type Target } from '../../session/target.js'

type MergeFlags = ActionFlags & {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
}

export async function runMerge(context: Context, flags: MergeFlags, address: string): Promise<void> {
  const target = parsePull(address)
  const { owner, repo, number: pullNumber } = target
  const { method, title, message } = flags
  const sha = checkSha(flags.matchHead)
  const name = formatTarget(target)
  const request = { owner, repo, pullNumber, method, title, message, sha }
  await act(context, flags, {
    name: 'merge',
    target,
    description: `merge ${name}${method ? ` (${method})` : ''}${sha ? ` if its head is ${sha}` : ''}`,
    request,
    send: (api, options) => api.merge(request, options),
    describe: ({ sha }) => sha ?? undefined,
    sentence: ({ sha }) => (sha === null ? undefined : `Merged ${name} as ${sha}`),
    note: ({ merged }) =>
      merged ? undefined : `${name} is not merged yet. The code host merges it when its checks have passed`,
  })
}

/** @throws RelayError `usage`. */
function parsePull(address: string): Target {
  const target = parseTarget(address)
  if (target.kind !== 'issue') return target
  throw new RelayError(
    'usage',
    `${JSON.stringify(address)} is the address of an issue. If it is a pull request, give ${formatTarget(target)}`,
  )
}

/** @throws RelayError `usage` for a shortened id: it matches no head, and would read like a changed head. */
function checkSha(sha: string | undefined): string | undefined {
  if (sha === undefined || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha)) return sha
  throw new RelayError('usage', '--match-head: must be a full commit id of 40 or 64 hexadecimal digits')
}
