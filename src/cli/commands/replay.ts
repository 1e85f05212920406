import { RelayError } from '../../base/errors.js'
import { hostSource } from '../../base/source-names.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { SEND } from '../options.js'
import { define, printEach, type Shell } from '../command.js'
import { awaitForwarded, checkForwarded, type FilterFlags } from '../journal.js'
import type { Profile } from '../profile.js'
import { selectItems } from '../selection.js'
import { readSources, sourceNamed } from '../sources.js'
import {
  isUnchanged,
  openSending,
  printSent,
  readPlan,
  send,
  type SendFlags,
  type SentItem,
  sentJson,
} from '../send.js'

export const replayCommand = define({
  description: `Sends fixtures or deliveries of the journal to the running relay serve or to any URL. The recorded bytes and signature
are sent unchanged if the signature matches the secret of its source and the time that it covers is recent; otherwise the request
is signed again. The first 8 MiB of files are checked before anything is sent, each later file when it is sent.`,
  examples: `relay replay last
relay replay test/fixtures --to http://localhost:3000/hook
relay replay --event push --since 1h --stop
relay replay --failed --forwarded
relay replay opened.json --set pull_request.number=7
relay replay opened.json --tamper signature --expect 401
relay replay --source stripe --since 1h --to http://localhost:3000/stripe
echo '{"zen":"ok"}' | relay replay - --event ping`,
  args: [['[file...]', 'fixtures, folders, -, entry numbers, or last']],
  options: [
    [
      '--event <match>',
      'only entries of this event; the event of files that name none',
      { repeatable: true },
    ],
    ['--source <name>', 'only entries of this source; the source of files'],
    ['--repo <owner/name>', 'only entries of this repository'],
    ['--since <when>', 'only entries received since: 1h (ago), 2026-01-31T12:00'],
    ['--failed', 'only to targets at which an entry failed (implies --keep-id)'],
    ['--last <n>', 'the newest N'],
    ['--forwarded', 'wait until all were forwarded; exit 3 if that failed at a target'],
    ['--keep-signature', 'send the recorded signature and id, whatever their age'],
    ...SEND.options,
  ],
  env: ['provider', ...SEND.env],
  exits: [
    [3, 'a status was not the expected one, or forwarding failed at a target'],
    6,
    [7, 'forwarding took over 5 minutes'],
    130,
  ],
  run: runReplay,
  print: printEach(printSent),
  json: sentJson,
})

type ReplayInput = SendFlags &
  FilterFlags & { readonly file?: readonly string[]; readonly forwarded?: boolean }

async function* runReplay(shell: Shell, flags: ReplayInput): AsyncGenerator<SentItem> {
  const { file: words = [] } = flags
  checkSelection(words, flags)
  const plan = readPlan(flags)
  if (flags.forwarded && plan.to !== undefined)
    throw new RelayError(
      'usage',
      '--forwarded: waits for the targets of the running relay serve, so it cannot be combined with --to',
    )
  await using profile = await openSending(shell, flags, plan)
  const provider = hostSource(profile.values.provider)
  const source =
    flags.source === undefined || words.length === 0
      ? undefined
      : sourceNamed(profile, await readSources(shell, profile, await profile.data()), flags.source)
  const items = await selectItems(shell, words, flags, { journal: profile.journal, provider, source })
  const followed = flags.forwarded ? await profile.journal() : undefined
  // Under a new id, every target would get it again, not only those where it failed.
  const keepId = plan.keepId || flags.failed === true
  const which = flags.failed ? 'failed' : 'all'
  const forwarding = isUnchanged({ ...plan, source: words.length === 0 ? undefined : plan.source })
    ? ({ which, isFinal: flags.forwarded === true } as const)
    : undefined
  const accepted = new Set<string>()
  for await (const sent of send(shell, { ...plan, keepId, forwarding }, items, profile)) {
    if (sent.answer.status === 200 || sent.target !== undefined) accepted.add(sent.delivery)
    yield sent
  }
  if (followed) await awaitForwards(shell, profile, followed, accepted)
}

function checkSelection(words: readonly string[], flags: FilterFlags): void {
  const { repo, source, since, failed, last, event = [] } = flags
  const given = Object.entries({ repo, since, failed, last }).find(([, value]) => value !== undefined)
  if (words.length === 0 && !given && source === undefined && event.length === 0)
    throw new RelayError(
      'usage',
      'Nothing to replay: give files, folders, -, entry numbers or last; or --last, --event, --since, --failed',
    )
  if (words.length === 0) return
  if (given)
    throw new RelayError('usage', `--${given[0]}: selects entries, so it cannot be combined with ${words[0]}`)
  if (event.length > 1)
    throw new RelayError('usage', '--event: names the event of files, so it can be given only once')
}

/** Time to wait for the targets, as in `relay wait`. Milliseconds. */
const LIMIT_MS = 300_000

/** Waits until the deliveries with these ids, which the instance has accepted, were forwarded to all their targets. */
async function awaitForwards(
  shell: Shell,
  profile: Profile,
  journal: Journal,
  accepted: ReadonlySet<string>,
): Promise<void> {
  const { out } = shell
  const end = performance.now() + LIMIT_MS
  const numbers = await journal.known([...accepted])
  const entries = await journal.summaries([...numbers.values()])
  const ended: Summary[] = []
  for (const entry of entries) {
    const summary = await awaitForwarded(shell, journal, entry, { profile, limit: end - performance.now() })
    if (!summary) throw new RelayError('timed_out', `#${entry.n} was received, but not forwarded within 5m`)
    ended.push(summary)
  }
  await checkForwarded(shell, profile, ended)
  if (entries.length > 0) out.say(`${entries.length} forwarded`)
}
