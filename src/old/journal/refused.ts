import { RelayError } from '../../base/errors.js'
import { callInstance } from '../../client/call-instance.js'
import type { Recorded } from '../../fixtures/fixture.js'
import type { RefusedAnswer, RefusedEntry, RefusedSummary } from '../../server/instance.js'
import type { RefusedKind } from '../../webhook/refused.js'
import type { Context } from '../context.js'
import { localTime, spokenTime } from '../output/time.js'
import { bold, dim, type Line, yellow } from '../output/line.js'
import { fit } from '../output/wrap.js'
import type { Attached } from '../session/attach.js'

const WORD = /^refused:(\d{1,15})$/

/** The number in `refused:3`; undefined for any other word. */
export function refusedId(word: string): number | undefined {
  const [, id] = WORD.exec(word) ?? []
  return id === undefined ? undefined : Number(id)
}

/** The refused requests of the profile's running instance, which it keeps in its memory. */
export interface RefusedReader {
  list(): Promise<RefusedAnswer>
  /** @throws RelayError `no_match` if the list does not have it. */
  entry(id: number): Promise<RefusedEntry>
  /** As a delivery that can be verified. */
  recorded(entry: RefusedEntry): Recorded
}

/** @throws RelayError `unavailable` if no instance of the profile runs. */
export function openRefusedReader(
  { signal }: Pick<Context, 'signal'>,
  { instance, options }: Attached,
): RefusedReader {
  if (!instance)
    throw new RelayError(
      'unavailable',
      `Profile ${options.profile} is not being served, and only the running instance has refused requests. Start it with relay serve`,
    )
  return {
    list: () => callInstance(instance, 'refused', {}, { signal }),
    entry: (id) =>
      callInstance(instance, 'refused entry', { id }, { signal }).catch((error: unknown) => {
        if (!(error instanceof RelayError) || error.kind !== 'not_found') throw error
        throw new RelayError(
          'no_match',
          `The running instance has no refused:${id}. relay log --refused lists those it has`,
        )
      }),
    recorded: ({ event, deliveryId, headers, body }) => ({
      provider: instance.provider,
      event: event ?? '',
      deliveryId: deliveryId ?? '',
      headers,
      body: Buffer.from(body, 'base64'),
    }),
  }
}

/** What requests of each kind have in common. */
export const KIND_NAMES: Readonly<Record<RefusedKind, string>> = {
  no_signature: 'without a well-formed signature',
  invalid_signature: 'whose signature does not match',
  invalid_event: 'malformed, or under the wrong event',
  too_large: 'too large',
  wrong_path: 'sent to another path',
}

const INDENT = '  '

/** `refused:3  2026-01-31 12:04:11  tunnel 401  push  72d3162e`, and the reason: on the same line where it fits `columns`. */
export function refusedLines(refused: RefusedSummary, columns: number): Line[] {
  const { id, at, via, status, event, deliveryId, reason } = refused
  const start = [
    `refused:${id}`,
    columns === Infinity ? localTime(at) : spokenTime(at, Date.now()),
    `${via} ${status}`,
    event ?? '-',
    deliveryId ?? '-',
  ]
  const [number = '', time = '', answer = '', ...claims] = start
  const line: Line = [bold(number), '  ', dim(time), '  ', yellow(answer), `  ${claims.join('  ')}`]
  if (start.join(INDENT).length + INDENT.length + reason.length <= columns)
    return [[line, `${INDENT}${reason}`]]
  return [line, ...fit(`${INDENT}${reason}`, columns).split('\n')]
}

/** A refused request for a program, without headers and body. */
export function refusedObject(refused: RefusedSummary): Record<string, unknown> {
  const { id, at, via, status, kind, reason, event, deliveryId, size } = refused
  const time = new Date(at).toISOString()
  return { type: 'refused', id, time, via, status, kind, reason, event, delivery: deliveryId, size }
}
