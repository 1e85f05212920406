import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import type { RecordedDelivery } from '../../replay/fixture.js'
import { proofsFor } from '../../schemes/proof.js'
import {
  explainSignature,
  type SignatureExplanation,
  unproved,
  type UnprovedReason,
} from '../../webhook/explain.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import { isEntry } from '../journal.js'
import { SECRET_ENV } from '../options.js'
import { marked, outside, own } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { green, red, t, type Text, textOf } from '../output/text.js'
import { openProfile } from '../profile.js'
import { isRefused, refusedId, refusedItem } from '../refused.js'
import type { Item } from '../send.js'
import { openSources } from '../sources.js'
import { selectItems } from './replay.js'

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
  const width = Math.max(...items.map(({ name }) => textOf(name).width))
  let wrong = 0
  let unmatched = 'The signature does not match'
  for (const { name, load, instead } of items) {
    const recorded = await load()
    if (!recorded) continue
    const source = await sourceOf(recorded)
    // Checked at the time of receipt, so that an old signature is not reported as too old.
    const known = await explainSignature(recorded, source, recorded.receivedAt)
    const [proof] = proofsFor(source.secrets.current, source.scheme)
    const isToken = proof?.algorithm === 'token' && !known.valid
    const explanation = instead?.(known) ?? (isToken ? unproved('unverifiable', TOKEN) : known)
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

function printVerdict({ name, explanation, width }: Verdict, out: Output): void {
  for (const line of verdictLines(name, explanation, width, out.width)) out.result(line, INDENT + HANGING)
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
const SIGNED = { current: '', previous: 'signed with the previous secret', none: 'its source proves nothing' }

/**
 * Formats `valid push.json`, `invalid push.json the signature is empty: …`. A reason that does not fit gets its own
 * lines.
 */
function verdictLines(
  name: string,
  explanation: SignatureExplanation,
  width: number,
  columns: number,
): Text[] {
  const verdict = explanation.valid ? green('valid  ') : red('invalid')
  const why = explanation.valid ? SIGNED[explanation.by] : explanation.hint
  if (why === '') return [t`${verdict}  ${name}`]
  const line = t`${verdict}  ${textOf(name).pad(width)}  ${why}`
  return line.width <= columns ? [line] : [t`${verdict}  ${name}`, t`${' '.repeat(INDENT)}${why}`]
}

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
