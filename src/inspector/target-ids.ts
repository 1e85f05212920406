import { createHmac, randomBytes } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Route } from '../dispatch/routes.js'

/** A target's own id is its address or command, which can hold a password. Of this run only. */
const KEY = randomBytes(32)
const DIGITS = 16

/** The id under which a browser knows a target. It says nothing of the target. */
export function publicId(id: string): string {
  return createHmac('sha256', KEY).update(id).digest('hex').slice(0, DIGITS)
}

/**
 * The ids of the targets that a browser names, each once.
 * @throws RelayError `bad_request` for one that is not configured (any more).
 */
export function targetsNamed(names: readonly string[], routes: readonly Route[]): readonly string[] {
  const known = new Map(routes.map(({ id }) => [publicId(id), id]))
  return [...new Set(names)].map((name) => {
    const id = known.get(name)
    if (id === undefined)
      throw new RelayError('bad_request', 'There is no such target any more. Reload the page')
    return id
  })
}
