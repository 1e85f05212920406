import { REACTIONS, type Reaction } from '../../codehost/actions.js'
import { type CommentTarget, type ReactionResult } from '../../codehost/host.js'
import { RelayError } from '../../base/errors.js'
import { ACTION, DRY_RUN, FROM, TARGET_HELP } from '../options.js'
import { define, type Shell } from '../command.js'
import { ACTED, type Action, performAction, type ActionFlags, readOperands, readTarget } from '../action.js'
import { marked } from '../output/outside.js'
import { formatTarget, numberField } from '../target.js'

export const reactCommand = define({
  ...ACTION,
  description: `Reacts to an issue, a pull request, or the comment with the given web address, as a signed-in user, and prints the name
of the reaction. A repeated reaction has no effect.`,
  examples: `relay react octo/demo#1 +1
relay react octo/demo#1 🚀
relay react https://github.com/octo/demo/issues/1#issuecomment-5 heart
relay wait issues.opened --json | relay react --from - eyes`,
  args: [
    ['[target]', TARGET_HELP],
    ['[reaction]', `${REACTIONS.join(', ')}, or the emoji`],
  ],
  options: [FROM, DRY_RUN],
  run: runReact,
  ...ACTED,
})

/** Other spellings of the reactions: the emoji that the code hosts show, and their names. */
const ALIASES: Readonly<Record<Reaction, readonly string[]>> = {
  '+1': ['👍', 'thumbsup'],
  '-1': ['👎', 'thumbsdown'],
  laugh: ['😄', '😆', '😀', '😂', 'smile', 'laughing'],
  confused: ['😕'],
  heart: ['❤', '♥'],
  hooray: ['🎉', 'tada'],
  rocket: ['🚀'],
  eyes: ['👀'],
}

/** Variation selectors (text or emoji style) and skin tones, which only change the look of an emoji. */
const VARIANTS = /\p{Variation_Selector}|\p{Emoji_Modifier}/gu

/**
 * Parses a reaction: its name, with or without colons, or the emoji. @throws RelayError `usage` that lists all
 * reactions
 */
function parseReaction(text: string | undefined): Reaction {
  if (text === undefined)
    throw new RelayError('usage', `No reaction given. Give one of ${REACTIONS.join(', ')}, or the emoji`)
  const plain = text.replaceAll(VARIANTS, '').toLowerCase()
  const name = /^:(.+):$/.exec(plain)?.[1] ?? plain
  const found = REACTIONS.find((reaction) => reaction === name || ALIASES[reaction].includes(name))
  if (found !== undefined) return found
  const list = REACTIONS.map((reaction) => `${reaction} ${ALIASES[reaction][0]}`).join(', ')
  throw new RelayError('usage', `${JSON.stringify(text)} is not a reaction. Give one of ${list}`)
}

type ReactInput = ActionFlags & { readonly reaction?: string | undefined }

async function* runReact(shell: Shell, flags: ReactInput) {
  const [address, word] = readOperands(flags, [flags.target, flags.reaction], 1)
  const content = parseReaction(word)
  yield* performAction(
    shell,
    flags,
    'react',
    await readTarget(shell, flags.from, address),
    (target, host): Action<ReactionResult> => {
      const { owner, repo, comment } = target
      const kind = comment?.kind === 'review' ? 'review' : 'comment'
      const on: CommentTarget | undefined = comment && { kind, id: comment.id }
      const what = kind === 'review' ? 'review comment' : kind
      const name = comment ? `${what} ${comment.id} on ${formatTarget(target)}` : formatTarget(target)
      const ids = comment && (kind === 'review' ? { reviewCommentId: comment.id } : { commentId: comment.id })
      return {
        description: `react ${content} to ${name}`,
        request: { owner, repo, ...numberField(target, host), ...ids, content },
        send: (account) => account.react(target, content, on),
        describe: (reacted) => ({
          object: marked({ ...reacted }),
          line: reacted.content,
          sentence: reacted.created
            ? `Reacted ${content} to ${name}`
            : `You had already reacted ${content} to ${name}`,
          note: reacted.created ? undefined : 'you had already added this reaction',
        }),
      }
    },
  )
}
