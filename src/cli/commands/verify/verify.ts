import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../../base/errors.js'
import { printable } from '../../../base/printable.js'
import { Secret } from '../../../base/secret.js'
import type { WebhookSecrets } from '../../../base/settings.js'
import type { Journal } from '../../../journal/journal.js'
import { schemeOf } from '../../../codehost/schemes.js'
import { explain } from '../../../webhook/explain.js'
import type { Context } from '../../context.js'
import { type JournalReader, openJournalReader } from '../../journal/open.js'
import { openRefusedReader, refusedId } from '../../journal/refused.js'
import { attach, type Attached } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { requireSecret, type SecretFlags, signingSecret } from '../../settings/signing-secret.js'
import { isEntry, selectItems } from '../replay/select-items.js'
import { refusedItem, type VerifyItem } from './refused.js'
import { verdictLines, verdictObject } from './verdict.js'

type VerifyFlags = CommonFlags & SecretFlags

/** Runs `relay verify`. */
export async function runVerify(
  context: Context,
  flags: VerifyFlags,
  words: readonly string[],
): Promise<void> {
  const refusedWords = words.some((word) => refusedId(word) !== undefined)
  const attached = await attach(context, flags, { standalone: !refusedWords && !words.some(isEntry) })
  const { output } = attached
  const secrets = readSecrets(context, flags, attached)
  await using reader = words.some(isEntry) ? await openJournalReader(attached) : undefined
  const refused = refusedWords ? openRefusedReader(context, attached) : undefined
  const selection = { journal: () => journalOf(reader), provider: undefined }
  const items: VerifyItem[] = []
  for (const word of words) {
    const id = refusedId(word)
    if (refused && id !== undefined) items.push(await refusedItem(refused, id))
    else items.push(...(await selectItems(context, [word], {}, selection)))
  }
  const layout = {
    width: Math.max(...items.map(({ name }) => printable(name).length)),
    columns: lineLength(context),
  }
  let invalid = 0
  for (const item of items) {
    const recorded = await item.load()
    if (!recorded) continue
    // The headers count as recorded.
    const known = await explain(recorded, { secrets, scheme: schemeOf(recorded.provider) })
    const explanation = item.instead?.(known) ?? known
    const verdict = { name: item.name, recorded, explanation }
    if (!explanation.valid) invalid += 1
    if (flags.json) output.object(verdictObject(verdict))
    else for (const line of verdictLines(verdict, layout)) output.result(line)
    // A large file takes seconds, and Ctrl-C is noticed only between two.
    await setImmediate(undefined, { signal: context.signal })
  }
  const which = items.length === 1 ? 'The signature does' : `${invalid} of ${items.length} signatures do`
  if (invalid > 0) throw new RelayError('invalid_signature', `${which} not match`)
}

/** Lines are wrapped on a terminal only. */
function lineLength({ stdout }: Context): number {
  return stdout.isTTY === true ? (stdout.columns ?? 80) : Infinity
}

/** @throws RelayError `settings` without a secret to verify with. */
function readSecrets(context: Context, flags: VerifyFlags, attached: Attached): WebhookSecrets {
  const current = requireSecret(signingSecret(context, flags, attached), 'verify with')
  const previous = flags.secretEnv === undefined ? attached.options.webhookSecretPrevious : undefined
  return { current, previous: previous === undefined ? undefined : new Secret(previous) }
}

function journalOf(reader: JournalReader | undefined): Journal {
  if (!reader) throw new Error('unreachable: no word names an entry')
  return reader.journal
}
