import { timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import type { HttpEnv } from '../http/body.js'
import { PROOF_HEADER } from '../instance/running.js'

/**
 * Lets only programs that read the profile's data use an endpoint: they prove that they know the instance's key. `proof` is
 * undefined when this process is not the profile's instance.
 * @throws RelayError `not_found`, as for an unknown path, without the proof.
 */
export function requireProof(c: Pick<Context<HttpEnv>, 'req'>, proof: string | undefined): void {
  const given = Buffer.from(c.req.header(PROOF_HEADER) ?? '')
  const expected = Buffer.from(proof ?? '')
  if (proof === undefined || given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new RelayError('not_found', 'Not found')
}
