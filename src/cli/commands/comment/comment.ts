import { parseStickyKey, type StickyResult, writeSticky } from '../../../codehost/pipelines.js'
import type { Cancellable } from '../../../base/abort.js'
import type { Taken } from '../../../client/client.js'
import type { CommentRef } from '../../../codehost/host.js'
import type { Context } from '../../context.js'
import { act, type Acting, type ActionFlags } from '../../session/action.js'
import { targetOfDelivery } from '../../session/delivery-target.js'
import { readDeliveryLine } from '../../session/piped-delivery.js'
import { type FindTarget, fixed, type Operands, readOperands, readSubject } from '../../session/subject.js'
import { formatTarget } from '../../session/target.js'
import { readText } from './text.js'

type CommentFlags = ActionFlags & { readonly bodyFile?: string; readonly sticky?: string }

export async function runComment(
  context: Context,
  flags: CommentFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const sticky = flags.sticky === undefined ? undefined : parseStickyKey(flags.sticky)
  const { find, body } = await readInput(context, flags, readOperands(flags, [first, second], 1))
  await act<CommentRef | StickyResult>(context, flags, find, (target) => {
    const { owner, repo, number: issueNumber } = target
    const request = { owner, repo, issueNumber, body }
    const how = sticky === undefined ? '' : `, sticky ${sticky}`
    return {
      name: 'comment',
      description: `comment on ${formatTarget(target)} (${formatBytes(Buffer.byteLength(body))}${how})`,
      request: { ...request, ...(sticky !== undefined && { sticky }) },
      send: (acting, options) =>
        sticky === undefined
          ? acting.api.comment(request, options)
          : sendSticky(acting, request, sticky, options),
      describe: ({ url }) => url,
    }
  })
}

interface Input {
  readonly find: FindTarget
  readonly body: string
}

/** Reads target and text. Where both are on standard input, the delivery is its first line and the text is the rest. */
async function readInput(context: Context, flags: CommentFlags, operands: Operands): Promise<Input> {
  const source = { argument: operands.other, file: flags.bodyFile }
  const isShared = flags.from === '-' && (source.argument === '-' || source.file === '-')
  if (!isShared) {
    // The text first: standard input may be a relay wait of minutes, and an error need not wait for it.
    const body = await readText(context, source)
    return { find: await readSubject(context, flags, operands), body }
  }
  const { delivery, rest } = await readDeliveryLine(context)
  const body = await readText(rest, source, 'Standard input has no text after the delivery')
  return { find: fixed(targetOfDelivery(delivery)), body }
}

function sendSticky(
  { api, owner, host, store }: Acting,
  request: Taken<'comment'>,
  key: string,
  options: Cancellable,
): Promise<StickyResult> {
  const account = host.as(owner.accessToken, options)
  const create = (body: string): Promise<CommentRef> => api.comment({ ...request, body }, options)
  const { issueNumber: number, body, ...repo } = request
  return writeSticky({ host, account, store, create }, { ...repo, number }, { key, body }, options)
}

function formatBytes(bytes: number): string {
  return bytes === 1 ? '1 byte' : `${bytes} bytes`
}
