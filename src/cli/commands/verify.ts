import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import type { RecordedDelivery } from '../../replay/fixture.js'
import { type SignatureExplanation } from '../../senders/explain.js'
import { unreadableFormat } from '../../senders/content.js'
import { unproved, type UnprovedReason } from '../../senders/unproved.js'
import { pathOf } from '../../base/source-names.js'
import { createSource, provenElsewhere, type Source } from '../../senders/source.js'
import { publicAddress } from '../addresses.js'
import { SECRET_ENV } from '../options.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import { isEntry } from '../journal.js'
import { marked, outside, own } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { green, red, t, type Text, textOf } from '../output/text.js'
import { openProfile } from '../profile.js'
import { refusedItem } from '../refused-request.js'
import { isRefused, refusedId } from '../refused.js'
import type { Item } from '../send.js'
import { addressesOf, openSources, readSources } from '../sources.js'
import { selectItems } from '../selection.js'

export const verifyCommand = define({
  description: `Checks the signatures of fixtures or of deliveries in the journal against the webhook secret, or that of their source. For one that does not match,
names the cause: another secret, or white space at its end; a body that was changed after signing, and how; a form read as
JSON; a signature in another header or format. Never prints a secret or a correct signature.`,
  examples: `relay verify opened.json
relay verify last
relay verify refused:3
relay verify test/fixtures --secret-env GITHUB_WEBHOOK_SECRET
relay verify - --json < opened.json | jq -r .reason`,
  args: [['<file...>', 'fixtures, folders, -, entry numbers, last, or refused:<number>']],
  options: [SECRET_ENV],
  env: ['home', 'store', 'webhookSecret', 'webhookSecretPrevious'],
  exits: [[0, 'all signatures match'], 5, 6, 130],
  run: runVerify,
  print: printEach(printVerdict),
  json,
})

type VerifyInput = Flags & { readonly file: readonly string[]; readonly secretEnv?: string }

interface Verdict {
  readonly name: string
  readonly recorded: RecordedDelivery
  readonly explanation: SignatureExplanation
  /** Columns of the widest name. */
  readonly width: number
}

/** A delivery to verify. `instead` replaces the explanation. */
type VerifyItem = Item & {
  readonly instead?: (explanation: SignatureExplanation) => SignatureExplanation | undefined
}

async function* runVerify(shell: Shell, flags: VerifyInput): AsyncGenerator<Verdict> {
  const { signal } = shell
  const { secretEnv, file: words } = flags
  const isOfProfile = words.some((word) => isRefused(word) || isEntry(word))
  await using profile = await openProfile(shell, flags, {
    mustExist: isOfProfile,
    instance: isOfProfile ? 'follow' : 'consult',
    problems: words.some(isRefused) ? 'fail' : 'warn',
  })
  const data = await profile.data()
  const sourceOf = openSources(shell, profile, { secretEnv, data, purpose: 'verify with' })
  const items: VerifyItem[] = []
  for (const word of words) {
    const id = refusedId(word, profile)
    const selection = { journal: profile.journal, provider: undefined }
    if (id !== undefined) items.push(await refusedItem(shell, profile, id))
    else items.push(...(await selectItems(shell, [word], {}, selection)))
  }
  // A source that lacks its secret, or cannot be read, proves nothing.
  const all = (await readSources(shell, profile, data).catch(() => [])).map((source) => createSource(source))
  const otherSource = async (recorded: RecordedDelivery) => provenElsewhere(recorded, recorded.provider, all)
  const urlsOf = ({ provider }: RecordedDelivery): readonly string[] => [
    ...new Set([publicAddress(profile) + pathOf(provider), addressesOf(profile)(provider)]),
  ]
  const width = Math.max(...items.map(({ name }) => textOf(name).width))
  let wrong = 0
  let unmatched = 'The signature does not match'
  for (const { name, load, instead } of items) {
    const recorded = await load()
    if (!recorded) continue
    const source = await sourceOf(recorded)
    // Checked at the time of receipt, so that an old signature is not reported as too old.
    const known = await explainAt(urlsOf(recorded), source, recorded)
    const isToken = source.sender.coverage(source.secrets.current) === 'sender' && !known.valid
    const own = instead?.(known) ?? (isToken ? unproved('unverifiable', TOKEN) : known)
    const elsewhere = own.valid ? undefined : await otherSource(recorded)
    const explanation = elsewhere === undefined ? own : unproved('other_source', elsewhere)
    if (!explanation.valid) {
      wrong += 1
      unmatched = OTHERWISE[explanation.reason] ?? unmatched
    }
    yield { name, recorded, explanation, width }
    // Yields, since a large file takes seconds and Ctrl-C is noticed only between two.
    await setImmediate(undefined, { signal })
  }
  if (wrong === 0) return
  const text = items.length === 1 ? unmatched : `${wrong} of ${items.length} signatures do not match`
  throw new RelayError('invalid_signature', text)
}

/** Explains a delivery as it came to one of these addresses, which some senders sign. */
async function explainAt(
  urls: readonly string[],
  { sender, secrets }: Pick<Source, 'sender' | 'secrets'>,
  recorded: RecordedDelivery,
): Promise<SignatureExplanation> {
  let found: SignatureExplanation | undefined
  for (const payloadUrl of urls) {
    const explanation = await sender.explain({ ...recorded, payloadUrl }, secrets, recorded.receivedAt)
    if (explanation.valid) return explanation
    found ??= explanation
  }
  return found ?? sender.explain(recorded, secrets, recorded.receivedAt)
}

function printVerdict(verdict: Verdict, out: Output): void {
  for (const line of verdictLines(verdict, out.width)) out.result(line, INDENT + HANGING)
}

/** Reasons whose hint names a header of the request. */
const QUOTING: ReadonlySet<UnprovedReason> = new Set([
  'wrong_header',
  'other_template',
  'unverifiable',
  'stale',
])

function json({ name, recorded: { provider, event, deliveryId }, explanation }: Verdict) {
  const about = { type: 'signature', name: outside(name), provider: own(provider) } as const
  const claims = { event: outside(event), delivery: outside(deliveryId) }
  if (explanation.valid) return marked({ ...about, ...claims, ...explanation })
  const { reason, hint } = explanation
  const why = { valid: false, reason, hint: QUOTING.has(reason) ? outside(hint) : own(hint) } as const
  return marked({ ...about, ...claims, ...why })
}

/** Replacements for these hints, by reason. */
const OTHERWISE: Partial<Readonly<Record<UnprovedReason, string>>> = {
  stale: 'The signature matches, and its time does not count',
  unverifiable: 'The signature cannot be verified',
}

const TOKEN = 'its source proves it with a token alone, which is a credential, and not stored'

/** Columns before the name and the reason. */
const INDENT = 'invalid  '.length
const HANGING = 4
const SIGNED = {
  current: '',
  previous: 'signed with the previous secret',
  own: "signed with relay's own key: its sender did not send it",
  none: 'its source proves nothing',
}

/**
 * Formats `valid push.json`, `invalid push.json the signature is empty: …`. A reason that does not fit gets its own
 * lines.
 */
function verdictLines({ name, recorded: { body }, explanation, width }: Verdict, columns: number): Text[] {
  const verdict = explanation.valid ? green('valid  ') : red('invalid')
  const format = unreadableFormat(body)
  const note = format === undefined ? '' : `the body is ${format}`
  const why = explanation.valid ? [SIGNED[explanation.by], note].filter(Boolean).join('; ') : explanation.hint
  if (why === '') return [t`${verdict}  ${name}`]
  const line = t`${verdict}  ${textOf(name).pad(width)}  ${why}`
  return line.width <= columns ? [line] : [t`${verdict}  ${name}`, t`${' '.repeat(INDENT)}${why}`]
}
