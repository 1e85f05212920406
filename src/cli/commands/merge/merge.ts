import { requireGreen } from '../../../codehost/pipelines.js'
import { RelayError } from '../../../base/errors.js'
import type { Taken } from '../../../client/client.js'
import type { Merged, MergeMethod } from '../../../codehost/host.js'
import type { Context } from '../../context.js'
import { act, type Action, type ActionFlags } from '../../session/action.js'
import { readOperands, readSubject } from '../../session/subject.js'
import { formatTarget, type Target } from '../../session/target.js'

type MergeFlags = ActionFlags & {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
  readonly ifGreen?: boolean
}

export async function runMerge(context: Context, flags: MergeFlags, address?: string): Promise<void> {
  const { method, title, message, ifGreen } = flags
  const sha = checkSha(flags.matchHead)
  const find = await readSubject(context, flags, readOperands(flags, [address], 0))
  await act(context, flags, find, (target) => {
    checkKind(target)
    const { owner, repo, number: pullNumber } = target
    const name = formatTarget(target)
    const request = { owner, repo, pullNumber, method, title, message, sha }
    return ifGreen ? mergeIfGreen(name, request) : merge(name, request, sha && ` if its head is ${sha}`)
  })
}

/** Merges; `condition` completes the description. */
function merge(name: string, request: Taken<'merge'>, condition = ''): Action<Merged> {
  const { method } = request
  return {
    name: 'merge',
    description: `merge ${name}${method ? ` (${method})` : ''}${condition}`,
    request,
    send: ({ api }, options) => api.merge(request, options),
    describe: ({ sha }) => sha ?? undefined,
    sentence: ({ sha }) => (sha === null ? undefined : `Merged ${name} as ${sha}`),
    note: ({ merged }) =>
      merged ? undefined : `${name} is not merged yet. The code host merges it when its checks have passed`,
  }
}

/** Merges exactly the head whose checks it has read, so that a push in between is not merged unchecked. */
function mergeIfGreen(name: string, request: Taken<'merge'>): Action<Merged> {
  return {
    ...merge(name, request),
    async check({ owner, host }, options) {
      const pull = {
        owner: request.owner,
        repo: request.repo,
        number: request.pullNumber,
        kind: 'pull',
      } as const
      const head = await host.as(owner.accessToken, options).headChecks(pull)
      if (request.sha !== undefined && request.sha.toLowerCase() !== head.sha)
        throw new RelayError('conflict', `${name} is not merged: its head is ${head.sha}`)
      requireGreen(name, head)
      const green = ', whose checks and statuses have all succeeded,'
      return merge(name, { ...request, sha: head.sha }, ` if its head is still ${head.sha}${green}`)
    },
  }
}

/** @throws RelayError `usage`. */
function checkKind(target: Target): void {
  if (target.kind !== 'issue') return
  const name = formatTarget(target)
  throw new RelayError(
    'usage',
    `${name} is an issue by its address. If it is a pull request, give ${name} as the target`,
  )
}

/** @throws RelayError `usage` for a shortened id: it matches no head, and would read like a changed head. */
function checkSha(sha: string | undefined): string | undefined {
  if (sha === undefined || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha)) return sha
  throw new RelayError('usage', '--match-head: must be a full commit id of 40 or 64 hexadecimal digits')
}
