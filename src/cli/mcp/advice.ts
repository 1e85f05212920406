import { openProfile, type Profile } from '../profile.js'
import { webhookSecret } from '../webhook-secret.js'
import type { UnprovedReason } from '../../senders/unproved.js'
import { aboutProfile, startCommand } from '../advice.js'
import { SANDBOX_PROFILE } from '../../base/command-line.js'
import { shownSource } from '../../base/source-names.js'
import { Outside, Own } from '../output/outside.js'
import type { Note } from './notes.js'
import { NAME } from './schemas.js'
import type { Call } from './tool.js'

// What to do next, in relay's own words.

/** Returns the command that starts relay with an emulated code host, which needs no account and no network. */
export function offlineCommand(profile: Profile): string {
  return startCommand({ ...aboutProfile(profile, SANDBOX_PROFILE), saved: { sandbox: true } })
}

/**
 * Explains how the user's program gets the secret that it verifies with, without showing it. A file of the working folder
 * can give a profile or a source a sentence as its name; such a name is from outside.
 */
export async function secretNote(call: Call, profile: Profile, source: string): Promise<Note> {
  const text = await secretText(call, profile, source)
  return [profile.name, source].every((each) => NAME.test(each)) ? text : new Outside(text)
}

async function secretText({ shell }: Call, profile: Profile, source: string): Promise<string> {
  if (shownSource(source) !== undefined)
    return `The program verifies with the secret of the source ${source}: ${profile.command(`source list --reveal ${source}`)} prints it`
  const data = await profile.data().catch(() => undefined)
  const place = (await webhookSecret(shell, profile, { data }).catch(() => undefined))?.place
  const where = place === undefined ? '' : place === 'profile' ? ', of the profile' : `, of ${place}`
  return `The program verifies with the webhook secret of relay${where}. Start it with WEBHOOK_SECRET="$(${profile.command('config --reveal webhookSecret')})", or the name that it reads`
}

/** Adds advice to a call if a handler refused the delivery. */
export async function noteRefusal(call: Call, delivery: object): Promise<void> {
  const { attempts = [], status, source }: Refusable = delivery
  const last = attempts.at(-1)?.status ?? status
  if (last !== 401 && last !== 403) return
  await using profile = await openProfile(call.shell, {}, { mustExist: false })
  const given = call.given['source']
  const name =
    source instanceof Own ? source.text : typeof given === 'string' ? given : profile.values.provider
  call.notes.add(
    `The target refused it with ${last}: it verifies with another secret, verifies other bytes than the body as it came, or wants credentials`,
  )
  call.notes.add(await secretNote(call, profile, name))
}

interface Refusable {
  readonly attempts?: readonly { readonly status?: number | null }[]
  readonly status?: number | null
  readonly source?: unknown
}

const SECRET = 'Enter the same secret at the sender and in relay: relay_state has the place of it'
const RAW =
  'Send the bytes that were signed: what is between the sender and relay must not parse the body and write it again'
const SENDER =
  'Change how the sender signs: the page of its source in docs/senders.md says what relay expects'
const CLOCK =
  'Set the clocks of both machines. A delivery that is too old is sent again by its sender, or with replay_delivery'

/** Advice for each reason why a request is not proved. */
export const NEXT: Readonly<Record<UnprovedReason, string>> = {
  no_signature:
    'Enter a secret at the sender, which then signs. If it is not a sender of yours, leave it refused',
  empty_signature: 'Enter a secret at the sender, which then signs',
  repeated_signature: 'Let a proxy in between pass each header on once',
  malformed_signature: SENDER,
  only_sha1: 'Enter a secret at the sender again: a current version signs with SHA-256, too',
  wrong_header: SENDER,
  malformed_part: SENDER,
  stale: CLOCK,
  secret_white_space: SECRET,
  secret_form: SECRET,
  other_template: SENDER,
  re_encoded: RAW,
  form: 'Choose JSON as the content type at the sender',
  truncated: RAW,
  changed_body: RAW,
  wrong_algorithm: SENDER,
  wrong_claim: SENDER,
  unknown_key: 'Enter the current public key of the sender in relay',
  unreachable_key: 'Try again once the address of the key answers, and look at the proxy of this machine',
  wrong_address: 'Enter at the sender exactly the address that relay_state has for the source',
  wrong_secret: SECRET,
  other_source:
    'Enter at the sender the address of the source that the hint names: relay_state has the addresses',
  unverifiable: 'Let the sender send it again: it cannot be verified later',
}
