import path from 'node:path'
import type { Journal } from '../../src/journal/journal.js'
import type { Attempt, Forward } from '../../src/journal/types.js'
import { type Header, SECRET } from './delivery.js'
import type { Env } from './folder.js'
import { valuesOf, receiver } from './receiver.js'
import { run } from './run.js'

/** Where a profile's data is: a place, or its environment. */
interface Profile {
  readonly env: Env
}

/** A delivery as the journal holds it. */
export interface Entry {
  readonly n: number
  readonly deliveryId: string
  readonly event: string
  readonly headers: readonly Header[]
  readonly body: Buffer
  /** All that `relay log --json` says of it. */
  readonly line: Readonly<Record<string, unknown>>
}

/** More than any test stores. */
const ALL = '1000000'

/**
 * All that a profile's journal holds, oldest first: what `relay log` says, and the bytes and headers that `relay replay --keep-id`
 * sends, which are those that came in if the signature was made with the secret.
 */
export async function entriesOf({ env }: Profile, secret = SECRET): Promise<Entry[]> {
  const listed = await linesOf({ env })
  await using target = await receiver()
  const argv = ['replay', '--last', ALL, '--keep-id', '--to', target.url, '--json']
  const replayed = await run(argv, { env: { ...env, RELAY_WEBHOOK_SECRET: secret } })
  if (listed.length === 0) return []
  if (replayed.code !== 0) throw new Error(`relay replay ended with ${replayed.code}:\n${replayed.err}`)
  const ids = target.received.map((request) => valuesOf(request, 'X-GitHub-Delivery')[0])
  const expected = listed.map(({ delivery }) => delivery)
  if (JSON.stringify(ids) !== JSON.stringify(expected))
    throw new Error(`relay log lists ${String(expected)}, and relay replay sent ${String(ids)}`)
  return target.received.map(({ headers, body }, i) => {
    const line = listed[i] ?? {}
    const [n, deliveryId, event] = [Number(line['n']), String(line['delivery']), String(line['event'])]
    return { n, deliveryId, event, headers, body, line }
  })
}

/** What `relay log --json` says of each delivery of a profile, oldest first. */
export async function linesOf({ env }: Profile, ...flags: string[]): Promise<Record<string, unknown>[]> {
  const { code, out, err } = await run(['log', '--json', '--last', ALL, ...flags], { env })
  // 6: there is none.
  if (code !== 0 && code !== 6) throw new Error(`relay log ended with ${code}:\n${err}`)
  return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

/** The comments of a profile's journal, in order. */
export async function commentsOf(profile: Profile, secret = SECRET): Promise<string[]> {
  return (await entriesOf(profile, secret))
    .filter(({ event }) => event === 'issue_comment')
    .map(({ body }) => JSON.parse(body.toString()).comment.body)
}

/** The numbers of the deliveries that wait for a target. */
export async function waitingOf(profile: Profile): Promise<number[]> {
  return (await linesOf(profile, '--status', 'waiting')).map(({ n }) => Number(n))
}

/** An attempt to fill in; what it leaves out is a success after 38 ms, 5 ms after the delivery came. */
export type FilledAttempt = Partial<Omit<Attempt, 'target' | 'answer'>> & {
  readonly answer?: string | Uint8Array
}

/** The way of a delivery to one target. */
export interface FilledForward extends Partial<Forward> {
  readonly attempts?: readonly FilledAttempt[]
}

/** A delivery to fill in. */
export interface Filled {
  readonly id: string
  readonly event?: string
  readonly action?: string | null
  readonly repo?: string | null
  readonly number?: number | null
  readonly ref?: string
  readonly hookId?: string
  readonly provider?: string
  readonly headers?: readonly Header[]
  readonly body?: string | Uint8Array
  /** Milliseconds since 1970-01-01 UTC. Default: {@link NOW}. */
  readonly receivedAt?: number
  readonly verifiedBy?: 'current' | 'previous'
  readonly restored?: {
    readonly how: string
    readonly sha256: string
    readonly unproved?: true
    readonly repeatable?: true
  }
  /** How often it came again. */
  readonly duplicates?: number
  /** By target, as the settings write it: `*=http://localhost:3000`, `push=exec:./deploy.sh`. */
  readonly forwards?: Readonly<Record<string, FilledForward>>
}

/** When filled deliveries came, unless they say otherwise. */
export const NOW = 1_700_000_000_000

const HEADERS: readonly Header[] = [
  ['X-GitHub-Event', 'push'],
  ['X-Twice', 'one'],
  ['x-twice', 'two \u00e9'],
]
/** Bytes that no encoding of text keeps. */
const BODY = Uint8Array.from([0, 255, 13, 10, 0xef, 0xbb, 0xbf])
const ANSWER = Uint8Array.of(0xff, 10, 0, 123)

/**
 * Writes deliveries into the journal of a profile as if they had come, by a connection of its own, as another process does. For what
 * no sender can bring about: old ones, and any history of attempts.
 */
export async function fill(
  { env }: Profile,
  deliveries: readonly Filled[],
  profile = env['RELAY_PROFILE'] ?? 'default',
): Promise<void> {
  await using opened = await openJournalOf(env, profile)
  for (const { id, forwards = {}, duplicates = 0, body = BODY, ...given } of deliveries) {
    const plan = { targets: Object.keys(forwards), onDuplicate: 'if-failed' as const }
    const delivery = {
      receivedAt: NOW,
      provider: 'github',
      event: 'push',
      deliveryId: id,
      hookId: '42',
      headers: HEADERS,
      verifiedBy: 'current' as const,
      action: null,
      repo: 'octo/demo',
      number: 7,
      ...given,
      body: typeof body === 'string' ? Buffer.from(body) : body,
    }
    const { n } = await opened.journal.append(delivery, plan)
    for (const [target, forward] of Object.entries(forwards))
      await record(opened, n, target, forward, delivery.receivedAt)
    for (let i = 0; i < duplicates; i++) await opened.journal.append(delivery, plan)
    await opened.journal.flush()
  }
}

/** Writes further attempts of a delivery at one of its targets, as {@link fill} does. */
export async function fillAttempts(
  { env }: Profile,
  n: number,
  target: string,
  forward: FilledForward,
): Promise<void> {
  await using opened = await openJournalOf(env, env['RELAY_PROFILE'] ?? 'default')
  await record(opened, n, target, forward, NOW)
}

/** A journal, and the way to end a forward without an attempt, as its age does. */
interface Opened extends AsyncDisposable {
  readonly journal: Journal
  readonly finish: (n: number, target: string, forward: Forward) => Promise<unknown>
}

async function openJournalOf(env: Env, profile: string): Promise<Opened> {
  const [{ openDatabase }, { Journal }, { finish }] = await Promise.all([
    import('../../src/store/open.js'),
    import('../../src/journal/journal.js'),
    import('../../src/journal/write.js'),
  ])
  const folder = path.join(env['RELAY_HOME'] ?? '', profile)
  const database = await openDatabase({ kind: 'file', folder })
  return {
    journal: new Journal(database.sql),
    finish: (n, target, forward) => database.sql.write(() => finish(n, target, forward, 'waiting')),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

async function record(
  { journal, finish }: Opened,
  n: number,
  target: string,
  { attempts = [], ...forward }: FilledForward,
  since: number,
): Promise<void> {
  const waits: Forward = { status: 'waiting', tries: 0, since }
  const last: Forward = { ...waits, status: attempts.length > 0 ? 'succeeded' : 'waiting', ...forward }
  for (const [i, { answer = ANSWER, ...attempt }] of attempts.entries())
    await journal.record(
      n,
      {
        at: since + 5,
        target,
        outcome: 'succeeded',
        status: 200,
        ms: 38,
        error: null,
        count: 1,
        ...attempt,
        answer: typeof answer === 'string' ? Buffer.from(answer) : answer,
      },
      i === attempts.length - 1 ? last : waits,
    )
  if (attempts.length === 0 && last.status !== 'waiting') await finish(n, target, last)
}
