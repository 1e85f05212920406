import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import { proofsFor } from '../../schemes/proof.js'
import {
  explainSignature,
  type SignatureExplanation,
  unproved,
  type UnprovedReason,
} from '../../webhook/explain.js'
import type { Flags, Shell } from '../command.js'
import { isEntry, journalOf } from '../journal.js'
import { green, red, t, type Text, textOf } from '../output/text.js'
import { attach, openData } from '../profile.js'
import { isRefused, refusedId, refusedItem } from '../refused.js'
import { openSources } from '../sources.js'
import { selectItems } from './replay.js'
import type { Item } from './send.js'

type VerifyFlags = Flags & { readonly secretEnv?: string }

/** A delivery to verify. `instead`: what is said instead of an explanation, if anything. */
type VerifyItem = Item & {
  readonly instead?: (explanation: SignatureExplanation) => SignatureExplanation | undefined
}

export async function runVerify(shell: Shell, flags: VerifyFlags, words: readonly string[]): Promise<void> {
  const { out, signal } = shell
  const { secretEnv } = flags
  const need = words.some(isRefused) ? 'answering' : words.some(isEntry) ? 'existing' : 'alone'
  const attached = await attach(shell, flags, need)
  await using data = await openData(attached)
  const sourceOf = openSources(shell, attached, { secretEnv, data, purpose: 'verify with' })
  const items: VerifyItem[] = []
  for (const word of words) {
    const id = refusedId(word, attached)
    const selection = { journal: () => journalOf(attached, data), provider: undefined }
    if (id !== undefined) items.push(await refusedItem(shell, attached, id))
    else items.push(...(await selectItems(shell, [word], {}, selection)))
  }
  const width = Math.max(...items.map(({ name }) => textOf(name).width))
  let wrong = 0
  let unmatched = 'The signature does not match'
  for (const { name, load, instead } of items) {
    const recorded = await load()
    if (!recorded) continue
    const { provider, event, deliveryId: delivery } = recorded
    const source = await sourceOf(recorded)
    // The headers count as recorded.
    const known = await explainSignature(recorded, source, recorded.receivedAt)
    const [proof] = proofsFor(source.secrets.current, source.scheme)
    const isToken = proof?.algorithm === 'token' && !known.valid
    const explanation = instead?.(known) ?? (isToken ? unproved('unverifiable', TOKEN) : known)
    if (!explanation.valid) {
      wrong += 1
      unmatched = OTHERWISE[explanation.reason] ?? unmatched
    }
    if (shell.json) out.object({ type: 'signature', name, provider, event, delivery, ...explanation })
    else
      for (const line of verdictLines(name, explanation, width, out.width)) out.result(line, INDENT + HANGING)
    // A large file takes seconds, and Ctrl-C is noticed only between two.
    await setImmediate(undefined, { signal })
  }
  if (wrong === 0) return
  const text = items.length === 1 ? unmatched : `${wrong} of ${items.length} signatures do not match`
  throw new RelayError('invalid_signature', text)
}

/** What a signature lacks that may match. */
const OTHERWISE: Partial<Readonly<Record<UnprovedReason, string>>> = {
  stale: 'The signature matches, and its time does not count',
  unverifiable: 'The signature cannot be verified',
}

const TOKEN = 'its source proves it with a token alone, which is a credential, and not stored'

/** The columns before the name and the reason. */
const INDENT = 'invalid  '.length
const HANGING = 4
const SIGNED = { current: '', previous: 'signed with the previous secret', none: 'its source proves nothing' }

/** `valid    push.json`, `invalid  push.json  the signature is empty: …`; a reason that does not fit gets lines of its own. */
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
