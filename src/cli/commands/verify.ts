import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { WebhookSecrets } from '../../base/settings.js'
import type { Recorded } from '../../replay/fixture.js'
import type { Journal } from '../../journal/journal.js'
import { schemeOf } from '../../codehost/schemes.js'
import type { Database } from '../../store/open.js'
import { explain, type Explanation } from '../../webhook/explain.js'
import type { Flags, Shell } from '../command.js'
import { journalOf } from '../journal.js'
import { green, red, t, type Text, textOf } from '../output/text.js'
import { type Attached, attach, openData, requireSecret, webhookSecret } from '../profile.js'
import { refusedId, type RefusedItem, refusedItem } from '../refused.js'
import { isEntry, selectItems } from './replay.js'
import type { Item } from './send.js'

type VerifyFlags = Flags & { readonly secretEnv?: string }

/** A delivery to verify. */
type VerifyItem = Item & Partial<Pick<RefusedItem, 'instead'>>

/** Whether one signature is valid, and why not. */
interface Verdict {
  readonly name: string
  readonly recorded: Recorded
  readonly explanation: Explanation
}

/** Runs `relay verify`. */
export async function runVerify(shell: Shell, flags: VerifyFlags, words: readonly string[]): Promise<void> {
  const { out, signal } = shell
  const ofProfile = words.some((word) => refusedId(word) !== undefined || isEntry(word))
  const attached = await attach(shell, flags, ofProfile ? 'existing' : 'alone')
  await using database = await openData(attached)
  const secrets = await readSecrets(shell, flags, attached, database)
  const items = await findItems(shell, attached, database, words)
  const width = Math.max(...items.map(({ name }) => textOf(name).width))
  let invalid = 0
  for (const { name, load, instead } of items) {
    const recorded = await load()
    if (!recorded) continue
    // The headers count as recorded.
    const known = await explain(recorded, { secrets, scheme: schemeOf(recorded.provider) })
    const explanation = instead?.(known) ?? known
    const verdict = { name, recorded, explanation }
    if (!explanation.valid) invalid += 1
    if (shell.json) out.object(verdictObject(verdict))
    else for (const line of verdictLines(verdict, width, out.width)) out.result(line, INDENT + HANGING)
    // A large file takes seconds, and Ctrl-C is noticed only between two.
    await setImmediate(undefined, { signal })
  }
  const which = items.length === 1 ? 'The signature does' : `${invalid} of ${items.length} signatures do`
  if (invalid > 0) throw new RelayError('invalid_signature', `${which} not match`)
}

/** @throws RelayError `settings` without a secret to verify with. */
async function readSecrets(
  shell: Shell,
  flags: VerifyFlags,
  attached: Attached,
  database: Database | undefined,
): Promise<WebhookSecrets> {
  const { secretEnv } = flags
  const found = await webhookSecret(shell, attached, { secretEnv, data: database })
  const previous = secretEnv === undefined ? attached.values.webhookSecretPrevious : undefined
  return {
    current: requireSecret(found, 'verify with').secret,
    previous: previous === undefined ? undefined : new Secret(previous),
  }
}

async function findItems(
  shell: Shell,
  attached: Attached,
  database: Database | undefined,
  words: readonly string[],
): Promise<VerifyItem[]> {
  const journal = (): Journal => journalOf(attached, database)
  const items: VerifyItem[] = []
  for (const word of words) {
    const id = refusedId(word)
    if (id !== undefined) items.push(await refusedItem(shell, attached, id))
    else items.push(...(await selectItems(shell, [word], {}, { journal, provider: undefined })))
  }
  return items
}

/** The columns before the name and the reason. */
const INDENT = 'invalid  '.length
const HANGING = 4
const SIGNED = { current: '', previous: 'signed with the previous secret' }

/** `valid    push.json`, `invalid  push.json  the signature is empty: …`; a reason that does not fit gets lines of its own. */
function verdictLines({ name, explanation }: Verdict, width: number, columns: number): Text[] {
  const verdict = explanation.valid ? green('valid  ') : red('invalid')
  const why = explanation.valid ? SIGNED[explanation.by] : explanation.hint
  if (why === '') return [t`${verdict}  ${name}`]
  const line = t`${verdict}  ${textOf(name).pad(width)}  ${why}`
  return line.width <= columns ? [line] : [t`${verdict}  ${name}`, t`${' '.repeat(INDENT)}${why}`]
}

function verdictObject({ name, recorded, explanation }: Verdict): Record<string, unknown> {
  const { provider, event, deliveryId: delivery } = recorded
  return { type: 'signature', name, provider, event, delivery, ...explanation }
}
