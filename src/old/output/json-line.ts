import { printableJson } from '../../base/printable.js'

/** The object on one line, marked `"v":1`; what could rewrite a terminal's display is escaped, which is the same JSON. */
export function jsonLine(value: object): string {
  return `${printableJson(JSON.stringify({ v: 1, ...value }))}\n`
}
