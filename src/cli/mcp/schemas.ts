import { z } from 'zod'
import { REACTIONS } from '../../codehost/actions.js'
import type { Forward, AttemptOutcome, VerifiedBy } from '../../journal/types.js'
import type { UnprovedReason } from '../../senders/unproved.js'
import type { ListedKind } from '../../webhook/refused.js'
import { SETTING_NAMES } from '../settings/table.js'
import { ownObject } from './own-object.js'

// Schemas of relay's own values in the results of `relay mcp`: numbers that it counts, words of closed lists, times,
// and names that the user has set. Everything else is from outside (`separated`).

/** Names that the user has set: of profiles, sources, targets, matches, users, and addresses of settings. */
const configured = z.string()
// Names that a file of the working folder can set. Its author can be anyone, so a text that can hold a sentence is from
// outside.
/** Name of a profile, source or scheme: at most two words. */
export const NAME = /^\w{1,20}(?:[-.]\w{1,20})?$/
const name = z.string().regex(NAME)
/** Place of a source's secret: a variable, or the profile. */
const place = z
  .string()
  .regex(/^(?:RELAY_SOURCE_[A-Z\d]{1,20}(?:_[A-Z\d]{1,20})?_SECRET(?:_FILE)?(?: in \.env)?|profile)$/)
const MATCH = String.raw`[\w*]{1,32}(?:[./-][\w*]{1,32}){0,2}`
/** Name of a target, or a match. */
const label = z
  .string()
  .regex(new RegExp(String.raw`^(?:${MATCH}=)?(?:https?://[\w.:[\]-]{1,64}(?:/\w{1,16}){0,2}/?|${MATCH})$`))
const count = z.number()
const flag = z.boolean()
/** Time in the format of `toISOString`. */
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
/** Null, in place of words from outside. */
const absent = z.null()

/** Words of a closed list. The compiler requires each of them. */
const words = <Word extends string>(list: Readonly<Record<Word, true>>) => z.enum(Object.keys(list))

const verifiedBy = words<VerifiedBy>({ current: true, previous: true, own: true, none: true })
const forwardState = words<Forward['status']>({ waiting: true, succeeded: true, failed: true })
const outcome = words<AttemptOutcome>({
  succeeded: true,
  retry: true,
  refused: true,
  unreachable: true,
  'timed out': true,
  killed: true,
})
const reason = words<UnprovedReason>({
  no_signature: true,
  empty_signature: true,
  repeated_signature: true,
  malformed_signature: true,
  only_sha1: true,
  wrong_header: true,
  malformed_part: true,
  stale: true,
  secret_white_space: true,
  secret_form: true,
  other_template: true,
  re_encoded: true,
  form: true,
  truncated: true,
  changed_body: true,
  wrong_algorithm: true,
  wrong_claim: true,
  unknown_key: true,
  unreachable_key: true,
  wrong_address: true,
  wrong_secret: true,
  other_source: true,
  unverifiable: true,
})
const refusedKind = words<ListedKind>({
  no_signature: true,
  invalid_signature: true,
  invalid_event: true,
  too_large: true,
  wrong_path: true,
  handshake: true,
  question: true,
})

const target = ownObject({
  target: label.optional(),
  state: forwardState.optional(),
  reason: absent.optional(),
  since: time.optional(),
  attempts: count.optional(),
  outcome: outcome.nullable().optional(),
  status: count.nullable().optional(),
  ms: count.nullable().optional(),
})
const attempt = ownObject({
  time: time.optional(),
  target: label.optional(),
  outcome: outcome.optional(),
  status: count.nullable().optional(),
  ms: count.optional(),
  error: absent.optional(),
  count: count.optional(),
})

/** An entry of the journal. */
const summary = ownObject({
  n: z.int().describe('the entry'),
  time: time.optional(),
  provider: name.optional(),
  source: name.optional(),
  scheme: name.optional(),
  verifiedBy: verifiedBy.optional(),
  restored: absent.optional(),
  unproved: flag.optional(),
  editedFrom: count.nullable().optional(),
  duplicates: count.optional(),
  size: count.optional(),
  ignoredBy: label.nullable().optional(),
  targets: z.array(target),
})
const age = z.string().regex(/^\d+(?:ms|[smhd])$/)
/** An entry in a list. */
export const line = ownObject({
  ...summary.shape,
  age: age.optional(),
  /** With the status of the last attempt: `failed 500`. */
  state: z
    .string()
    .regex(/^(?:waiting|succeeded|failed|none)(?: \d+)?$/)
    .optional(),
  targets: z.array(target).optional(),
})
/** Number of attempts in a result, the newest: a target that is down for long gets thousands. */
export const MAX_ATTEMPTS = 10
export const delivery = ownObject({
  ...summary.shape,
  targets: z.array(target).optional(),
  attempts: z.array(attempt).optional(),
  /** Number of attempts before those. */
  earlierAttempts: count.optional(),
  /** Number of targets besides those. */
  moreTargets: count.optional(),
})
export const refused = ownObject({
  id: z.int(),
  age: age.optional(),
  time: time.optional(),
  via: z.enum(['http', 'tunnel']).optional(),
  source: name.optional(),
  status: count.optional(),
  kind: refusedKind.optional(),
  size: count.optional(),
  complete: flag.optional(),
})
/**
 * A verdict. `hint` is present only for reasons that quote nothing of the request; `signature` where it was refused for
 * something else.
 */
export const verdict = ownObject({
  valid: z.boolean(),
  by: verifiedBy.optional(),
  reason: z.union([reason, refusedKind]).optional(),
  signature: z.enum(['matches', 'does not match']).optional(),
  hint: z.string().optional(),
  /** Advice. */
  next: z.string().optional(),
})
/** A generated or stored delivery that was sent. */
const sent = ownObject({
  ok: z.boolean(),
  status: z.number().nullable(),
  ms: count.optional(),
  n: count.nullable().optional(),
  signedAgain: flag.optional(),
  late: flag.optional(),
  target: label.optional(),
  targetName: label.optional(),
  error: absent.optional(),
})
/** A forward that was ended. */
export const skipped = ownObject({ n: count, target: label, name: label })
/** Outcome of a delivery, in relay's own words and numbers. */
export const became = z.string()
/** Advice in relay's own words. */
export const advice = z.string()
export const SENT = { outcome: became.optional(), sent: sent.optional(), delivery: delivery.optional() }

export const route = ownObject({
  target: label.optional(),
  match: label.optional(),
  name: label.optional(),
  state: z.enum(['up', 'down', 'gone', 'elsewhere', 'idle']).optional(),
  since: time.nullable().optional(),
  nextTryAt: time.nullable().optional(),
  waiting: count.optional(),
  succeeded: count.optional(),
  failed: count.optional(),
})
export const routesTest = ownObject({
  n: count,
  ignoredBy: label.nullable(),
  routes: z.array(ownObject({ target: label, matched: flag })),
})

const source = ownObject({
  name,
  scheme: name,
  /** An address on this machine. That of a tunnel was chosen by its server. */
  address: z
    .string()
    .regex(/^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\/webhook\/\w{1,20}(?:[-.]\w{1,20})?$/),
  secret: place.nullable(),
  previous: flag,
  lastDelivery: ownObject({ n: count, time }).nullable(),
  lastRefusal: ownObject({ id: count, time }).nullable(),
})
export const STATE = {
  profile: name,
  running: ownObject({
    pid: count,
    url: configured,
    startedAt: time,
    sandbox: flag,
    inspector: configured,
  }).nullable(),
  start: configured.nullable(),
  startOffline: configured.optional(),
  /** An address on this machine. That of a tunnel was chosen by its server. */
  payloadUrl: z.string().regex(/^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\/webhook$/),
  secret: configured,
  settings: ownObject(
    Object.fromEntries(
      ['flags', 'environment', '.env', 'relay.json', 'config.json', 'setup', 'profile'].map((place) => [
        place,
        z.array(z.enum(SETTING_NAMES)).optional(),
      ]),
    ),
  ),
  routes: z.array(route),
  advice: advice.optional(),
  sources: z.array(source),
  tunnels: z.array(ownObject({ source: name, state: z.enum(['connecting', 'connected', 'waiting']) })),
  codeHost: ownObject({
    url: configured,
    user: configured,
    signedIn: flag,
    hooks: z.array(ownObject({ id: count.nullable(), permanent: flag.optional() })),
  }).nullable(),
}

/** Result of `comment`, `merge` and `react`. `url` is present if it is exactly the target's address. */
export const done = ownObject({
  id: count.nullable().optional(),
  url: configured.optional(),
  created: flag.optional(),
  updated: flag.optional(),
  merged: flag.optional(),
  sha: z
    .string()
    .regex(/^[0-9a-f]{40,64}$/)
    .nullable()
    .optional(),
  content: z.enum(REACTIONS).optional(),
  dryRun: flag.optional(),
  action: z.enum(['comment', 'merge', 'react']).optional(),
  target: configured.optional(),
  user: configured.optional(),
  provider: name.optional(),
  providerUrl: configured.optional(),
})
