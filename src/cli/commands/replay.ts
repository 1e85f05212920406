import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { fromFixture, type RecordedDelivery } from '../../replay/fixture.js'
import { findFixtures } from '../../replay/load.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { define, printEach, type Shell } from '../command.js'
import type { Source } from '../../webhook/signature.js'
import {
  awaitForwarded,
  checkForwarded,
  type FilterFlags,
  findEntry,
  isEntry,
  readFilter,
} from '../journal.js'
import type { Profile } from '../profile.js'
import { readSources, sourceNamed } from '../sources.js'
import {
  type Item,
  openSending,
  printSent,
  readPlan,
  SEND,
  send,
  type SendFlags,
  type SentItem,
  sentJson,
} from '../send.js'

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
  const { provider } = profile.values
  const source =
    flags.source === undefined || words.length === 0
      ? undefined
      : sourceNamed(profile, await readSources(shell, profile, await profile.data()), flags.source)
  const items = await selectItems(shell, words, flags, { journal: profile.journal, provider, source })
  const followed = flags.forwarded ? await profile.journal() : undefined
  // Under a new id, every target would get it again, not only those where it failed.
  const keepId = plan.keepId || flags.failed === true
  const accepted = new Set<string>()
  for await (const sent of send(shell, { ...plan, keepId }, items, profile)) {
    if (sent.answer.status === 200) accepted.add(sent.delivery)
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

interface Selection {
  readonly journal: () => Promise<Journal>
  /** The provider of files that hold only a payload. */
  readonly provider: string | undefined
  /** Source that replaces the deliveries' own. */
  readonly source?: Source | undefined
}

/**
 * Bytes of fixtures that are read before anything is sent: enough for most tests. Bounds memory and the wait before
 * sending.
 */
const READ_AHEAD = 8_388_608
/** Bytes of a fixture besides its body: headers and names. */
const OVERHEAD = 4096

/**
 * Selects the named deliveries in the given order; without names, those that the flags select in the journal, oldest
 * first. They are read when they are sent, except for the first files, so that an invalid one is found before.
 */
export async function selectItems(
  shell: Shell,
  words: readonly string[],
  flags: FilterFlags,
  { journal: open, provider, source }: Selection,
): Promise<Item[]> {
  const { cwd, stdin, signal } = shell
  const items: Item[] = []
  const addEntry = (journal: Journal, n: number): void => {
    items.push({ name: `#${n}`, load: () => journal.read(n) })
  }
  if (words.length === 0) {
    const filter = readFilter(flags, Date.now())
    const journal = await open()
    for await (const { n } of journal.select(filter)) addEntry(journal, n)
    if (items.length === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
    return items.toReversed()
  }
  const of = source && { provider: source.name, scheme: source.schemeText }
  const options = { event: flags.event?.[0], provider, ...of, stdin, signal }
  let size = 0
  for (const word of words) {
    if (isEntry(word)) {
      const journal = await open()
      addEntry(journal, (await findEntry(journal, word)).n)
      continue
    }
    const isPiped = word === '-'
    for await (const { name, load } of findFixtures([isPiped ? word : path.resolve(cwd, word)], options)) {
      // Only the body's bytes stay in memory, not the text of its file.
      const read = (): RecordedDelivery => ({ ...fromFixture(load()), ...of })
      const recorded = size < READ_AHEAD ? read() : undefined
      size += OVERHEAD + (recorded?.body.length ?? 0)
      // Relative, so that a report is the same on every machine.
      const shown = isPiped ? name : path.relative(cwd, name)
      items.push({ name: shown, load: async () => recorded ?? read() })
    }
  }
  return items
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
