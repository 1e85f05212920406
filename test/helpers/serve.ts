import type { Entry } from '../../src/journal/types.js'

export function textOf({ body }: Entry): string {
  return Buffer.from(body).toString()
}
