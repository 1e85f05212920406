import type { Entry } from '../../src/journal/delivery.js'

export function textOf({ body }: Entry): string {
  return Buffer.from(body).toString()
}
