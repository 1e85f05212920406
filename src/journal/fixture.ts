import { isUtf8 } from 'node:buffer'
import type { Delivery, Header } from './delivery.js'
import { passedOn } from './headers.js'

/** A delivery in a file of its own, which people can read and keep beside their tests. */
export interface Fixture {
  readonly relay: 1
  readonly provider: string
  readonly event: string
  /** The provider's id of the delivery. */
  readonly delivery: string
  /** As received, but for those of the connection and credentials. One given several times has all its values. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** The body's exact text; where it is not UTF-8 there is `bodyBase64` instead. */
  readonly body?: string | undefined
  readonly bodyBase64?: string | undefined
  /** Instead of a body, where a person wrote the fixture: sent as compact JSON. */
  readonly payload?: Readonly<Record<string, unknown>> | undefined
}

/** What a fixture keeps of a delivery. */
export type Recorded = Pick<Delivery, 'provider' | 'event' | 'deliveryId' | 'headers' | 'body'>

export function toFixture({ provider, event, deliveryId, headers, body }: Recorded): Fixture {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return {
    relay: 1,
    provider,
    event,
    delivery: deliveryId,
    headers: toObject(passedOn(headers)),
    ...(isUtf8(bytes) ? { body: bytes.toString() } : { bodyBase64: bytes.toString('base64') }),
  }
}

/** The headers as they stand in the file, where a person may have put those of one connection, and credentials. */
export function fromFixture(fixture: Fixture): Recorded {
  const { provider, event, delivery } = fixture
  return { provider, event, deliveryId: delivery, headers: fixtureLines(fixture), body: fixtureBody(fixture) }
}

/** The file's content. */
export function fixtureText(fixture: Fixture): string {
  return `${JSON.stringify(fixture, null, 2)}\n`
}

/** The body's exact bytes. */
export function fixtureBody({
  body,
  bodyBase64,
  payload,
}: Pick<Fixture, 'body' | 'bodyBase64' | 'payload'>): Uint8Array {
  if (body !== undefined) return Buffer.from(body)
  return bodyBase64 === undefined ? Buffer.from(JSON.stringify(payload)) : Buffer.from(bodyBase64, 'base64')
}

/** The headers line by line, as they stand in the file. */
export function fixtureLines({ headers }: Pick<Fixture, 'headers'>): Header[] {
  const lines: Header[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') lines.push([name, value])
    else for (const one of value) lines.push([name, one])
  }
  return lines
}

/** In the order and spelling of each name's first line. */
function toObject(headers: readonly Header[]): Record<string, string | string[]> {
  const lines = new Map<string, { name: string; values: string[] }>()
  for (const [name, value] of headers) {
    const known = lines.get(name.toLowerCase())
    if (known) known.values.push(value)
    else lines.set(name.toLowerCase(), { name, values: [value] })
  }
  const one = (values: string[]): string | string[] =>
    values.length === 1 && values[0] !== undefined ? values[0] : values
  return Object.fromEntries([...lines.values()].map(({ name, values }) => [name, one(values)]))
}
