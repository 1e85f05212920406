import { MERGE_METHODS, REACTIONS } from '../../codehost/host.js'
import type { Commands, FlagSpec } from '../command.js'
import { USER_COMMAND } from './signing-in.js'

const ACTION = {
  ...USER_COMMAND,
  exits: [4, [6, 'the delivery of --from names no issue or pull request'], 8, 130],
} as const

const DRY_RUN: FlagSpec = ['--dry-run', 'print what would happen, and do nothing']
const FROM: FlagSpec = [
  '--from <entry|->',
  'issue or pull request of this delivery: its number in the journal, last, or - (standard input)',
]
const TARGET_HELP = 'owner/repo#12, or the web address of an issue, pull request or comment; omit with --from'

export const ACTIONS: Commands = {
  comment: {
    ...ACTION,
    summary: 'comment on an issue or pull request',
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
      DRY_RUN,
    ],
    load: async () => (await import('../commands/actions.js')).runComment,
  },

  merge: {
    ...ACTION,
    summary: 'merge a pull request',
    description: `Merges a pull request as a signed-in user, and prints the id of the merge commit, or that the code host will merge it
once its checks have passed. With --if-green, merges only if every check and status of the head has succeeded, was skipped or
is neutral, and only that head. A head without any is not merged.`,
    examples: `relay merge https://github.com/octo/demo/pull/2
relay merge octo/demo#2 --method squash --title "Add a greeting (#2)"
relay merge octo/demo#2 --match-head "$(git rev-parse HEAD)"
git push && relay wait check_suite.completed --json | relay merge --from - --if-green`,
    args: [['[target]', 'owner/repo#12, or the web address of a pull request; omit with --from']],
    options: [
      FROM,
      ['--method <method>', 'merge method', { choices: MERGE_METHODS, defaultText: 'merge' }],
      ['--title <text>', 'title of the merge commit'],
      ['--message <text>', 'message of the merge commit'],
      ['--match-head <sha>', 'merge only if the head is this commit (full id)'],
      ['--if-green', 'merge only if all checks and statuses of the head have succeeded'],
      DRY_RUN,
    ],
    exits: [[3, 'with --if-green: checks failed, have not finished, or are missing'], ...ACTION.exits],
    load: async () => (await import('../commands/actions.js')).runMerge,
  },

  react: {
    ...ACTION,
    summary: 'react to an issue, pull request or comment',
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
    load: async () => (await import('../commands/actions.js')).runReact,
  },
}
