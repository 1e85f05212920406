import { isUtf8 } from 'node:buffer'
import { RelayError } from '../../../base/errors.js'
import type { RefusedEntry } from '../../../server/instance.js'
import { layOut } from '../../../json/text.js'
import type { Context } from '../../context.js'
import { jsonLines } from '../../output/json-lines.js'
import { shownTime } from '../../output/time.js'
import { readPayload } from '../../../journal/payload.js'
import { openRefusedReader, refusedObject } from '../../journal/refused.js'
import { bold, dim, type Line, yellow } from '../../output/line.js'
import type { Attached } from '../../session/attach.js'

/** Runs `relay show refused:3`. */
export async function showRefused(
  context: Context,
  flags: { readonly json?: boolean; readonly body?: boolean },
  attached: Attached,
  id: number,
): Promise<void> {
  const { output } = attached
  const reader = openRefusedReader(context, attached)
  const entry = await reader.entry(id)
  const body = Buffer.from(entry.body, 'base64')
  if (flags.body) {
    if (body.length < entry.size)
      throw new RelayError('no_match', `Only ${body.length} of its ${entry.size} bytes were stored`)
    return output.exactly(body)
  }
  if (flags.json) return output.object(entryObject(entry, body))
  await output.pages(page(entry, body, output.isTerminal))
}

function entryObject(entry: RefusedEntry, body: Buffer): Record<string, unknown> {
  return {
    ...refusedObject(entry),
    headers: entry.headers.map(([name, value]) => ({ name, value })),
    ...(isUtf8(body) ? { body: body.toString() } : { bodyBase64: entry.body }),
    complete: body.length === entry.size,
    payload: readPayload({ headers: entry.headers, body })?.value ?? null,
  }
}

function page(entry: RefusedEntry, body: Buffer, isTerminal: boolean): Line[] {
  const { id, at, via, status, reason, event, deliveryId, headers } = entry
  const properties = [
    ['refused', shownTime(at, isTerminal)],
    ['reason', reason],
    ['came', via === 'tunnel' ? 'through the tunnel' : `over HTTP, answered ${status}`],
    ['claims', `event ${event ?? '(none)'}, delivery ${deliveryId ?? '(none)'}`],
  ] as const
  return [
    [bold(`refused:${id}`), '  ', yellow('not proved, and never forwarded')],
    '',
    ...properties.map(([name, text]) => [dim(name.padEnd(12)), text]),
    '',
    dim('headers'),
    ...headers.map(([name, value]) => `  ${name}: ${value}`),
    '',
    ...bodyLines(entry, body),
  ]
}

function bodyLines({ headers, size }: RefusedEntry, body: Buffer): Line[] {
  if (body.length === 0) return [dim(size === 0 ? 'no body' : `body (${size} bytes): not read`)]
  const cut = body.length < size ? `; the first ${body.length} were stored` : ''
  const title = dim(`body (${size} bytes${cut})`)
  const payload = cut === '' ? readPayload({ headers, body }) : undefined
  const lines = payload ? jsonLines(layOut(payload.text)) : body.toString().split('\n')
  return [title, ...lines.map((line): Line => ['  ', line])]
}
