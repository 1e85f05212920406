import type { DeliveryDetail } from '../../api.js'

export interface HeaderChange {
  readonly name: string
  readonly before?: string
  readonly after?: string
}

/** How the headers differ, by name in any case; values of a repeated name are joined as RFC 9110 section 5.3 allows. */
export function diffHeaders(
  before: DeliveryDetail['headers'],
  after: DeliveryDetail['headers'],
): readonly HeaderChange[] {
  const [left, right] = [joined(before), joined(after)]
  const names = [...new Set([...left.keys(), ...right.keys()])]
  return names.flatMap((name): HeaderChange[] => {
    const [one, other] = [left.get(name), right.get(name)]
    if (one === other) return []
    return [{ name, ...(one !== undefined && { before: one }), ...(other !== undefined && { after: other }) }]
  })
}

function joined(headers: DeliveryDetail['headers']): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const known = values.get(key)
    values.set(key, known === undefined ? value : `${known}, ${value}`)
  }
  return values
}
