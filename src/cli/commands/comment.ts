import { RelayError } from '../../base/errors.js'
import { parseStickyKey, writeSticky } from '../../codehost/pipelines.js'
import type { CommentResult } from '../../codehost/host.js'
import { ACTION, DRY_RUN, FROM, TARGET_HELP } from '../options.js'
import { define, type Shell } from '../command.js'
import {
  ACTED,
  type Action,
  performAction,
  type ActionFlags,
  DELIVERY,
  type Operands,
  parseDelivery,
  readOperands,
  readTarget,
} from '../action.js'
import { readInput, inputText } from '../input.js'
import { marked, outside, own } from '../output/outside.js'
import { formatTarget, numberField, type ActionTarget, targetOfDelivery } from '../target.js'

export const commentCommand = define({
  ...ACTION,
  description: `Comments on an issue or pull request as a signed-in user, and prints the address of the comment. With --sticky, edits
the comment that it made there before with the same key, instead of adding another.`,
  examples: `relay comment octo/demo#1 "Looks good"
git log -1 --stat | relay comment octo/demo#1 -
relay comment https://github.com/octo/demo/pull/2 --body-file notes.md
relay comment --from last "On it"
{ relay wait check_suite --json; cat report.md; } | relay comment --from - --sticky ci -`,
  details: () => [
    'Standard input:',
    [['If both --from and the text are -, the first line is the delivery and the rest is the text.', '']],
  ],
  args: [
    ['[target]', TARGET_HELP],
    ['[text]', 'text of the comment; - reads standard input'],
  ],
  options: [
    FROM,
    ['--body-file <file>', 'read the comment from a file'],
    ['--sticky <key>', 'edit the comment made before with this key, if there is one'],
    ['--quick-actions', 'send lines that begin with a slash, which GitLab carries out'],
    DRY_RUN,
  ],
  run: runComment,
  ...ACTED,
})

interface CommentInput extends ActionFlags {
  readonly text?: string | undefined
  readonly bodyFile?: string
  readonly sticky?: string
  readonly quickActions?: boolean
}

async function* runComment(shell: Shell, flags: CommentInput) {
  const sticky = flags.sticky === undefined ? undefined : parseStickyKey(flags.sticky)
  const operands = readOperands(flags, [flags.target, flags.text], 1)
  const { target: given, body } = await readComment(shell, flags, operands)
  const { quickActions } = flags
  yield* performAction(shell, flags, 'comment', given, (target, host): Action<Commented> => {
    const bytes = Buffer.byteLength(body)
    const size = `${bytes} byte${bytes === 1 ? '' : 's'}${sticky === undefined ? '' : `, sticky ${sticky}`}`
    const { owner, repo } = target
    const text = { body, ...(sticky !== undefined && { sticky }), ...(quickActions && { quickActions }) }
    return {
      description: `comment on ${formatTarget(target)} (${size})`,
      request: { owner, repo, ...numberField(target, host), ...text },
      async send(account, { database }) {
        if (sticky === undefined) return account.comment(target, body, { quickActions })
        const parts = { host, account, store: database.store }
        return writeSticky(parts, target, { key: sticky, body, quickActions }, shell)
      },
      describe({ id, url, created }) {
        // A code host may write a name with other capitals.
        const isOwn =
          id === null ||
          host
            .commentPaths(target, id)
            .some((path) => `${host.url}${path}`.toLowerCase() === url.toLowerCase())
        const known = { id, url: isOwn ? own(url) : outside(url) }
        const note =
          id === null ? 'the code host carried out its quick actions, and made no comment' : undefined
        return { object: marked(created === undefined ? known : { ...known, created }), line: url, note }
      },
    }
  })
}

/** A comment. `created` tells for a sticky comment if it is new. */
type Commented = CommentResult & { readonly created?: boolean }

/** Longest text of a comment: 1 MiB, many times more than any code host accepts. */
const MAX_TEXT = 1_048_576
const TEXT_TOO_LARGE = 'larger than 1 MiB'

/**
 * Reads target and text. The text is the argument, a file, or standard input (`-` in both), without its byte order
 * mark. If both are on standard input, the delivery is its first line and the text is the rest.
 */
async function readComment(
  shell: Shell,
  { from, bodyFile: file }: CommentInput,
  [address, argument]: Operands,
): Promise<{ readonly target: ActionTarget | undefined; readonly body: string }> {
  const { stdin } = shell
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as an argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) {
    const how = stdin.isTTY === true ? '- to type it here' : '- to read standard input'
    throw new RelayError('usage', `No text given. Give it as an argument, with --body-file, or ${how}`)
  }
  if (from === '-' && source === '-') {
    const input = await readInput(shell, '-', { ...DELIVERY, limit: DELIVERY.limit + MAX_TEXT })
    const end = input.includes('\n') ? input.indexOf('\n') : input.length
    const target = targetOfDelivery(parseDelivery(input.subarray(0, end)))
    const bytes = input.subarray(end + 1)
    if (bytes.length > MAX_TEXT) throw new RelayError('too_large', `The text is ${TEXT_TOO_LARGE}`)
    return {
      target,
      body: commentText(bytes, 'standard input', 'Standard input has no text after the delivery'),
    }
  }
  // The text is read first: standard input may be a relay wait of minutes, and an error need not wait for it.
  const name = source === '-' ? 'standard input' : `--body-file: ${source}`
  const isText = argument !== undefined && argument !== '-'
  const options = { name, tooLarge: TEXT_TOO_LARGE, limit: MAX_TEXT, what: 'the comment' }
  const body = commentText(isText ? Buffer.from(argument) : await readInput(shell, source, options), name)
  return { target: await readTarget(shell, from, address), body }
}

function commentText(bytes: Uint8Array, name: string, blank = 'The text is empty'): string {
  const text = inputText(bytes, name)
  if (/\S/.test(text)) return text
  throw new RelayError('usage', blank)
}
