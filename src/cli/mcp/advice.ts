import { openProfile, type Profile } from '../profile.js'
import { webhookSecret } from '../webhook-secret.js'
import type { UnprovedReason } from '../../senders/unproved.js'
import { aboutProfile, startCommand } from '../advice.js'
import { SANDBOX_PROFILE } from '../../base/command-line.js'
import { hostSource, shownSource } from '../../base/source-names.js'
import { Outside, Own } from '../output/outside.js'
import type { Note } from './notes.js'
import { NAME } from './schemas.js'
import type { Call } from './tool.js'
import type { ListedKind } from '../../webhook/refused.js'
import type { Database } from '../../store/open.js'
import { isEmptySecret } from '../../senders/secrets.js'
import type { Shell } from '../command.js'
import { readSources } from '../sources.js'

// Advice about the next step, in relay's own words.

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
  const data = await profile.data().catch(() => undefined)
  if (shownSource(source) !== undefined && (await hasNoSecret(shell, profile, data, source)))
    return `The source ${source} has no secret, so that there is nothing to verify with`
  if (shownSource(source) !== undefined)
    return `The program verifies with the secret of the source ${source}: ${profile.command(`source list --reveal ${source}`)} prints it`
  const place = (await webhookSecret(shell, profile, { data }).catch(() => undefined))?.place
  const start = `tart it with WEBHOOK_SECRET="$(${profile.command('config --reveal webhookSecret')})", or the name that it reads`
  if (place === undefined)
    return `The program verifies with the webhook secret of relay, which relay makes at its first start. Then s${start}`
  const where = place === 'profile' ? 'the profile' : place
  return `The program verifies with the webhook secret of relay, of ${where}. S${start}`
}

async function hasNoSecret(
  shell: Shell,
  profile: Profile,
  data: Database | undefined,
  source: string,
): Promise<boolean> {
  const sources = await readSources(shell, profile, data).catch(() => [])
  const found = sources.find(({ name }) => name === source)
  return found !== undefined && isEmptySecret(found.secrets.current)
}

/** Adds to a call what to do about a handler that refused a delivery, if one of its targets did. */
export async function noteRefusal(call: Call, delivery: object): Promise<void> {
  const { targets = [], status, source }: Refusable = delivery
  const answered = [status, ...targets.map((each) => each.status)].find(
    (each) => each === 401 || each === 403,
  )
  if (answered === undefined) return
  await using profile = await openProfile(call.shell, call.flags, { mustExist: false })
  const given = call.given['source']
  const name =
    source instanceof Own
      ? source.text
      : typeof given === 'string'
        ? given
        : hostSource(profile.values.provider)
  call.notes.add(
    `The target refused it with ${answered}: it verifies with another secret, verifies other bytes than the body as it came, or wants credentials`,
  )
  call.notes.add(await secretNote(call, profile, name))
}

interface Refusable {
  readonly targets?: readonly { readonly status?: number | null }[]
  readonly status?: number | null
  readonly source?: unknown
}

/**
 * Says where the reason is, if relay itself refused what a call sent. The answer to a sender does not have it.
 * @param status of that answer
 */
export function noteOwnRefusal(call: Call, status: number): void {
  call.notes.add(
    `relay refused it with ${status}, and no target got it: list_deliveries with refused: true has its id, and explain_refused says why`,
  )
}

/** How a route comes to be, which no tool makes. */
export const ADD_ROUTE =
  'The user adds one, such as "forward": ["http://localhost:3000/hook"] in relay.json, which it reads at once'
const WITHOUT_ROUTE = `There is no route, so that no program gets a delivery. ${ADD_ROUTE}`

/** Returns what to do about these routes, if there are none. */
export function adviceFor(routes: readonly object[]): { readonly advice?: string } {
  return routes.length > 0 ? {} : { advice: WITHOUT_ROUTE }
}

const SECRET = 'Enter the same secret at the sender and in relay: relay_state has the place of it'
const RAW =
  'Send the bytes that were signed: what is between the sender and relay must not parse the body and write it again'
const SENDER = 'Change how the sender signs: the hint says what is wrong with it'
const CLOCK =
  'Set the clocks of both machines. A delivery that is too old is sent again by its sender, or with replay_delivery'

/** Advice about a request that was refused for something else than its signature. */
export const NEXT_OF_KIND: Readonly<Partial<Record<ListedKind, string>>> = {
  invalid_event:
    'Send it again as its sender does: POST, with the headers that name the event and the delivery once each, and a body of JSON or a form with payload. The reason in refused says what is wrong',
  too_large: 'Let the sender send less, or the user enlarge maxBody: it was larger than that',
  wrong_path:
    'Enter at the sender the address that relay_state has: that of its source or, for the code host, payloadUrl',
  handshake: 'Nothing: the sender has asked whether the address is there. Its deliveries come later',
  question: 'Nothing, unless it was to be a delivery, which is sent with POST',
}

/** Advice about a request that is not proved. */
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
