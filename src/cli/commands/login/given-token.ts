import { addAbortSignal } from 'node:stream'
import { missingScopes } from '../../../auth/token-endpoint.js'
import type { Cancellable } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { readBounded } from '../../../base/read-bounded.js'
import { systemClock } from '../../../base/time.js'
import type { Context } from '../../context.js'
import { readInput } from '../../input.js'
import type { Session } from '../../session/session.js'
import { signedIn, type SignedIn } from '../../session/signed-in.js'

/** The longest token that relay stores, and a line end. */
const MAX_BYTES = 8_194
const INPUT = { name: 'Standard input', tooLarge: 'longer than any token (8 KiB)' }

/** Visible ASCII, as an Authorization header requires. */
const TOKEN = /^[\x21-\x7e]+$/

/**
 * Reads an access token from standard input, without one newline at its end.
 * @throws RelayError `usage` for a terminal, which would show it, for no token and for text that is none, which is not quoted;
 * `too_large`; AbortError when the context's signal aborts.
 */
export async function readGivenToken({ stdin, signal }: Context): Promise<string> {
  if (stdin.isTTY === true)
    throw new RelayError(
      'usage',
      'A terminal would show the token. Pipe it in, for example relay login --with-token < token.txt',
    )
  const input = addAbortSignal(signal, stdin)
  const bytes = await readInput(() => readBounded(input, MAX_BYTES), { ...INPUT, signal })
  const token = bytes.toString('latin1').replace(/\r?\n$/, '')
  if (TOKEN.test(token)) return token
  throw new RelayError(
    'usage',
    token === ''
      ? 'Standard input has no token'
      : 'Standard input is not one token: it has white space, or characters that no token has',
  )
}

/**
 * Stores a token that the user made at the code host, after asking whose it is. It has no refresh token.
 * @throws RelayError `invalid_token` when the code host does not accept it, otherwise as `CodeHost`; `storage`.
 */
export async function storeToken(
  session: Session,
  accessToken: string,
  options: Cancellable,
): Promise<SignedIn> {
  const { host, tokens, user, settings, output } = session
  const facts = await host
    .as(accessToken, options)
    .facts()
    .catch((error: unknown) => {
      throw explained(error, host.url)
    })
  const expiresAt = facts.expiresAt ?? systemClock() + settings.tokenTtl
  await tokens.save(user, { accessToken, expiresAt, origin: host.origin })
  session.remember()
  const missing = missingScopes(host.oauth, facts.scopes)
  if (missing.length > 0)
    output.log.warn(`The token lacks the scope ${missing.join(', ')}: some actions may be refused`)
  return signedIn(session, { userId: user, expiresAt }, facts.login)
}

function explained(error: unknown, url: string): unknown {
  if (!(error instanceof RelayError) || error.kind !== 'invalid_token') return error
  return new RelayError('invalid_token', `${url} does not accept this token. Nothing is stored`)
}
