import type { Context } from '../../context.js'
import { act, type ActionFlags } from '../../session/action.js'
import { formatTarget, parseTarget } from '../../session/target.js'
import { readText } from './text.js'

export async function runComment(
  context: Context,
  flags: ActionFlags & { readonly bodyFile?: string },
  address: string,
  argument?: string,
): Promise<void> {
  const target = parseTarget(address)
  const body = await readText(context, { argument, file: flags.bodyFile })
  const { owner, repo, number: issueNumber } = target
  const request = { owner, repo, issueNumber, body }
  await act(context, flags, {
    name: 'comment',
    target,
    description: `comment on ${formatTarget(target)} (${formatBytes(Buffer.byteLength(body))})`,
    request,
    send: (api, options) => api.comment(request, options),
    describe: ({ url }) => url,
  })
}

function formatBytes(bytes: number): string {
  return bytes === 1 ? '1 byte' : `${bytes} bytes`
}
