import { pathOf, shownSource } from '../base/source-names.js'
import { RelayError } from '../base/errors.js'
import { bodyFormat, readContent } from '../senders/content.js'
import type { SignatureExplanation } from '../senders/explain.js'
import type { RefusedEntry } from '../server/instance.js'
import type { Shell } from './command.js'
import { callInstance } from './instance-client.js'
import { bytesField, readableBody } from './output/delivery.js'
import { marked, outside } from './output/outside.js'
import { bold, dim, type Line, t, yellow } from './output/text.js'
import { shownTime } from './output/time.js'
import type { Profile } from './profile.js'
import { instanceOf, refusedObject, refusedWord } from './refused.js'

// One refused request as a whole, for `show` and `verify refused:N`.

/**
 * Reads a refused request. @throws RelayError `no_match` if the instance does not list it, or no longer; as
 * `callInstance`, also if none runs
 */
async function readRefused(shell: Shell, profile: Profile, id: number): Promise<RefusedEntry> {
  return callInstance(instanceOf(profile), 'refused entry', { id }, shell).catch((error: unknown) => {
    if (!(error instanceof RelayError) || error.kind !== 'not_found') throw error
    throw new RelayError(
      'no_match',
      `The running instance has no ${refusedWord(id)}. ${profile.command('log --refused')} lists those it has`,
    )
  })
}

/** Reads a refused request with its body, as far as it was stored. @throws RelayError as {@link readRefused} */
export async function openRefused(shell: Shell, profile: Profile, id: number) {
  const entry = await readRefused(shell, profile, id)
  return { entry, body: Buffer.from(entry.body, 'base64') }
}
export type OpenedRefused = Awaited<ReturnType<typeof openRefused>>

/** Returns the exact bytes of the body. @throws RelayError `no_match` if they were not stored whole */
export function wholeBody({ entry: { size }, body }: OpenedRefused): Buffer {
  if (body.length === size) return body
  throw new RelayError('no_match', `Only ${body.length} of its ${size} bytes were stored`)
}

export function openedObject({ entry, body }: OpenedRefused) {
  const { headers, size } = entry
  return marked({
    ...refusedObject(entry),
    headers: outside(headers.map(([name, value]) => ({ name, value }))),
    ...bytesField('body', body),
    complete: body.length === size,
    payload: outside(readContent(body).value ?? null),
  })
}

/** Formats a refused request for a person. */
export function refusedPage({ entry, body }: OpenedRefused, isTerminal: boolean): Line[] {
  const { id, at, via, source, status, kind, reason, event, deliveryId, headers, size } = entry
  const path = shownSource(source) === undefined ? '' : ` to ${pathOf(source)}`
  const properties = [
    ['refused', shownTime(at, isTerminal)],
    ['reason', reason],
    ['came', via === 'tunnel' ? 'through the tunnel' : `over HTTP${path}, answered ${status}`],
    ['claims', `event ${event ?? '(none)'}, delivery ${deliveryId ?? '(none)'}`],
  ] as const
  const cut = body.length < size ? `; the first ${body.length} were stored` : ''
  const format = bodyFormat(body)
  const missing = size === 0 ? 'no body' : `body (${size} bytes): not read`
  return [
    t`${bold(refusedWord(id))}  ${yellow(kind === 'handshake' ? 'a handshake, and no delivery' : 'not proved, and never forwarded')}`,
    '',
    ...properties.map(([name, text]) => t`${dim(name.padEnd(12))}${text}`),
    '',
    dim('headers'),
    ...headers.map(([name, value]) => `  ${name}: ${value}`),
    '',
    dim(
      body.length === 0 ? missing : `body (${size} bytes${cut})${format === undefined ? '' : `: ${format}`}`,
    ),
    ...(body.length === 0 ? [] : readableBody({ headers, body }).lines),
  ]
}

/**
 * Makes the item that `relay verify` explains. If the signed bytes are not known, since the body was not stored whole
 * or a tunnel changed it, the instance's own reason is used. @throws RelayError as {@link readRefused}
 */
export async function refusedItem(shell: Shell, profile: Profile, id: number) {
  const { at, via, source, size, reason, event, deliveryId, headers, query, body } = await readRefused(
    shell,
    profile,
    id,
  )
  const recorded = {
    provider: source,
    event: event ?? '',
    deliveryId: deliveryId ?? '',
    headers,
    ...(query !== undefined && { query }),
    body: Buffer.from(body, 'base64'),
    receivedAt: at,
  }
  const { unproved } = await import('../senders/unproved.js')
  const isKnown = via === 'http' && recorded.body.length === size
  return {
    name: refusedWord(id),
    load: async () => recorded,
    instead: (known: SignatureExplanation) =>
      known.valid || (isKnown && known.reason !== 'unverifiable')
        ? undefined
        : unproved('unverifiable', reason),
  }
}
