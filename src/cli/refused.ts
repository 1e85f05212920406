import { isUtf8 } from 'node:buffer'
import { RelayError } from '../base/errors.js'
import type { Recorded } from '../replay/fixture.js'
import type { RunningInstance } from '../instance/running.js'
import { readPayload } from '../journal/payload.js'
import { layOut } from '../json/text.js'
import type { RefusedAnswer, RefusedEntry, RefusedSummary } from '../server/instance.js'
import type { Explanation } from '../webhook/explain.js'
import type { RefusedKind } from '../webhook/refused.js'
import type { Shell } from './command.js'
import { callInstance } from './instance-client.js'
import { bold, dim, join, jsonLines, type Line, t, type Text, yellow } from './output/text.js'
import { localTime, shownTime, spokenTime } from './output/time.js'
import type { Attached } from './profile.js'

// The requests that the running instance refused, which are in its memory only.

const WORD = /^refused:(\d{1,15})$/

/** The number in `refused:3`; undefined for any other word. */
export function refusedId(word: string): number | undefined {
  const [, id] = WORD.exec(word) ?? []
  return id === undefined ? undefined : Number(id)
}

/** @throws RelayError `unavailable` if no instance of the profile runs; as `callInstance` */
export async function listRefused({ signal }: Shell, attached: Attached): Promise<RefusedAnswer> {
  return callInstance(instanceOf(attached), 'refused', {}, { signal })
}

/** @throws RelayError `no_match` if the instance does not have it, or no longer; as {@link listRefused} */
export async function readRefused({ signal }: Shell, attached: Attached, id: number): Promise<RefusedEntry> {
  try {
    return await callInstance(instanceOf(attached), 'refused entry', { id }, { signal })
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind !== 'not_found') throw error
    throw new RelayError(
      'no_match',
      `The running instance has no refused:${id}. relay log --refused lists those it has`,
    )
  }
}

function instanceOf({ instance, profile }: Attached): RunningInstance {
  if (instance) return instance
  throw new RelayError(
    'unavailable',
    `Profile ${profile} is not being served, and only the running instance has refused requests. Start it with relay serve`,
  )
}

/** A refused request whose signature can be explained. */
export interface RefusedItem {
  /** `refused:3` */
  readonly name: string
  readonly load: () => Promise<Recorded>
  /** What is said instead of an explanation, if anything. */
  readonly instead: (explanation: Explanation) => Explanation | undefined
}

/**
 * Where the bytes that were signed are not known, since the body was not stored whole or a tunnel changed it, the reason that the
 * instance found counts.
 * @throws RelayError as {@link readRefused}
 */
export async function refusedItem(shell: Shell, attached: Attached, id: number): Promise<RefusedItem> {
  const { via, size, reason, event, deliveryId, headers, body } = await readRefused(shell, attached, id)
  const recorded = {
    provider: instanceOf(attached).provider,
    event: event ?? '',
    deliveryId: deliveryId ?? '',
    headers,
    body: Buffer.from(body, 'base64'),
  }
  const { invalid } = await import('../webhook/explain.js')
  const isKnown = via === 'http' && recorded.body.length === size
  return {
    name: `refused:${id}`,
    load: async () => recorded,
    instead: ({ valid }) => (valid || isKnown ? undefined : invalid('unverifiable', reason)),
  }
}

/** What requests of each kind have in common. */
const KIND_NAMES: Readonly<Record<RefusedKind, string>> = {
  no_signature: 'without a well-formed signature',
  invalid_signature: 'whose signature does not match',
  invalid_event: 'malformed, or under the wrong event',
  too_large: 'too large',
  wrong_path: 'sent to another path',
}

/** `34,890 without a well-formed signature, 3 too large` */
export function describeCounts(counts: RefusedAnswer['counts']): string {
  const given: ReadonlyMap<string, number> = new Map(Object.entries(counts))
  return Object.entries(KIND_NAMES)
    .flatMap(([kind, name]) => {
      const count = given.get(kind)
      return count === undefined ? [] : [`${count.toLocaleString('en-US')} ${name}`]
    })
    .join(', ')
}

/** `refused:3  2026-01-31 12:04:11  tunnel 401  push  72d3162e`, and the reason: on the same line where it fits `columns`. */
export function refusedLines(refused: RefusedSummary, columns: number): readonly Text[] {
  const { id, at, via, status, event, deliveryId, reason } = refused
  const time = columns === Infinity ? localTime(at) : spokenTime(at, Date.now())
  const cells = [
    bold(`refused:${id}`),
    dim(time),
    yellow(`${via} ${status}`),
    event ?? '-',
    deliveryId ?? '-',
  ]
  const line = join(cells, '  ')
  const whole = t`${line}  ${reason}`
  return whole.width <= columns ? [whole] : [line, ...t`  ${reason}`.wrap(columns, 2)]
}

/** A refused request for a program, without headers and body. */
export function refusedObject(refused: RefusedSummary): Record<string, unknown> {
  const { id, at, via, status, kind, reason, event, deliveryId, size } = refused
  const time = new Date(at).toISOString()
  return { type: 'refused', id, time, via, status, kind, reason, event, delivery: deliveryId, size }
}

/** The same with them. */
export function refusedEntryObject(entry: RefusedEntry): Record<string, unknown> {
  const { headers, size } = entry
  const body = Buffer.from(entry.body, 'base64')
  return {
    ...refusedObject(entry),
    headers: headers.map(([name, value]) => ({ name, value })),
    ...(isUtf8(body) ? { body: body.toString() } : { bodyBase64: entry.body }),
    complete: body.length === size,
    payload: readPayload({ headers, body })?.value ?? null,
  }
}

/** The lines that show a refused request to a person. */
export function refusedPage(entry: RefusedEntry, isTerminal: boolean): Line[] {
  const { id, at, via, status, reason, event, deliveryId, headers } = entry
  const properties = [
    ['refused', shownTime(at, isTerminal)],
    ['reason', reason],
    ['came', via === 'tunnel' ? 'through the tunnel' : `over HTTP, answered ${status}`],
    ['claims', `event ${event ?? '(none)'}, delivery ${deliveryId ?? '(none)'}`],
  ] as const
  return [
    t`${bold(`refused:${id}`)}  ${yellow('not proved, and never forwarded')}`,
    '',
    ...properties.map(([name, text]) => t`${dim(name.padEnd(12))}${text}`),
    '',
    dim('headers'),
    ...headers.map(([name, value]) => `  ${name}: ${value}`),
    '',
    ...bodyLines(entry),
  ]
}

function bodyLines({ headers, size, body: stored }: RefusedEntry): Line[] {
  const body = Buffer.from(stored, 'base64')
  if (body.length === 0) return [dim(size === 0 ? 'no body' : `body (${size} bytes): not read`)]
  const cut = body.length < size ? `; the first ${body.length} were stored` : ''
  const payload = cut === '' ? readPayload({ headers, body }) : undefined
  const lines = payload
    ? jsonLines(layOut(payload.text), '  ')
    : body
        .toString()
        .split('\n')
        .map((line) => `  ${line}`)
  return [dim(`body (${size} bytes${cut})`), ...lines]
}
