import { MERGE_METHODS } from '../../../codehost/host.js'
import type { CommandSpec } from '../../command.js'
import { ACTION_COMMAND, DRY_RUN, FROM } from '../../session/user-command.js'

export const merge: CommandSpec = {
  ...ACTION_COMMAND,
  name: 'merge',
  summary: 'merge a pull request',
  description: `Merges a pull request as a signed-in user, and prints the id of the merge commit. If the code host will merge
it later, once its checks have passed, the command prints that instead. With --if-green it merges only if every check and every
status of the head has succeeded, was skipped or is neutral, and only that head. A head without any is not merged.`,
  examples: [
    'relay merge https://github.com/octo/demo/pull/2',
    'relay merge octo/demo#2 --method squash --title "Add a greeting (#2)"',
    'relay merge octo/demo#2 --match-head "$(git rev-parse HEAD)"',
    'git push && relay wait check_suite.completed --json | relay merge --from - --if-green',
  ],
  arguments: [
    { name: '[target]', help: 'owner/repo#12, or the web address of a pull request; omit with --from' },
  ],
  options: [
    FROM,
    {
      flags: '--method <method>',
      help: `merge method: ${MERGE_METHODS.join(', ')}`,
      choices: MERGE_METHODS,
      defaultText: 'merge',
    },
    { flags: '--title <text>', help: 'title of the merge commit' },
    { flags: '--message <text>', help: 'message of the merge commit' },
    { flags: '--match-head <sha>', help: 'merge only if the head is this commit (full id)' },
    { flags: '--if-green', help: 'merge only if all checks and statuses of the head have succeeded' },
    DRY_RUN,
  ],
  exitCodes: [
    [3, 'with --if-green: checks failed, have not finished, or are missing'],
    ...ACTION_COMMAND.exitCodes,
  ],
  load: async () => (await import('./merge.js')).runMerge,
}
