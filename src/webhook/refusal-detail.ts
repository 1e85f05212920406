import type { RelayError } from '../base/errors.js'

/** Why a delivery is too large, and what to do: code hosts send it only once. `declared` is its Content-Length. */
export function sizeReason(declared: string | undefined, maxBody: number): string {
  const size = declared === undefined ? `over ${bytes(maxBody)}` : bytes(Number(declared))
  return `${size}, the limit is ${bytes(maxBody)}. Raise --max-body, then redeliver it at the code host`
}

function bytes(count: number): string {
  return `${count.toLocaleString('en-US')} byte${count === 1 ? '' : 's'}`
}

/** Why a delivery is malformed. */
export function invalidReason({ cause }: RelayError): string {
  return cause instanceof Error ? cause.message : 'the body is not a form with a payload'
}
