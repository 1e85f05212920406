import { type RevokeOptions, revokeToken, type RenewParts } from '../../auth/renew.js'
import { RelayError } from '../../base/errors.js'
import { isSharedAddress } from '../../base/shared-store.js'
import type { CodeHost } from '../../codehost/host.js'
import type { RunningInstance } from '../../instance/protocol.js'
import type { Flags, Shell } from '../command.js'
import { callInstance } from '../instance-client.js'
import { tilde } from '../output/text.js'
import { spokenInstant } from '../output/time.js'
import { attach } from '../profile.js'
import { openSession, type Session } from '../session.js'

// What a user does with a stored token: print it, ask whose it is, delete it.

export async function runToken(shell: Shell, flags: Flags & { readonly header?: boolean }): Promise<void> {
  const { out, json } = shell
  await using session = await openSession(shell, await attach(shell, flags))
  const { accessToken, expiresAt } = await session.owner()
  if (json) out.object({ user: session.user, accessToken, expiresAt: new Date(expiresAt).toISOString() })
  else out.result(flags.header ? `Authorization: Bearer ${accessToken}` : accessToken)
}

/** The account of a token whose owner the code host has named, as `login` and `whoami` print it. `login`: its name there. */
export function signedIn(
  { host, attached, user }: Session,
  { expiresAt }: { expiresAt: number },
  login: string,
) {
  const { values, profile, folder } = attached
  const places = { file: folder, keychain: `the keychain, service relay:${profile}`, memory: 'memory' }
  const store = isSharedAddress(values.store) ? `the shared store ${values.store}` : places[values.store]
  const expiry = new Date(expiresAt).toISOString()
  return { user, login, provider: host.name, providerUrl: host.url, store, expiresAt: expiry }
}
export type SignedIn = ReturnType<typeof signedIn>

export async function runWhoami(shell: Shell, flags: Flags): Promise<void> {
  const { out, json, signal } = shell
  await using session = await openSession(shell, await attach(shell, flags))
  const { host, user } = session
  const owner = await session.owner()
  const facts = await host
    .as(owner.accessToken, { signal })
    .facts()
    .catch((error: unknown) => {
      if (!(error instanceof RelayError) || !error.kind.startsWith('provider_')) throw error
      // The token may be valid.
      const message = `Could not get the account of ${user}: ${error.message}`
      throw new RelayError(error.kind, message, { cause: error })
    })
  const account = signedIn(session, owner, facts.login)
  if (json) return out.object(account)
  const expiry = out.isTerminal ? spokenInstant(owner.expiresAt, Date.now()) : account.expiresAt
  const lines = [
    ['account', account.login],
    ['code host', account.providerUrl],
    ['user', account.user],
    ['token', `in ${tilde(account.store)}, expires ${expiry}`],
  ] as const
  for (const [name, text] of lines) out.result(`${name.padEnd(11)}${text}`)
}

export async function runRevoke(shell: Shell, flags: Flags & { readonly local?: boolean }): Promise<void> {
  const { out, json, signal } = shell
  await using session = await openSession(shell, await attach(shell, flags))
  const { host, client, tokens, database, user, attached } = session
  const { instance, values } = attached
  const { store } = database
  const local = flags.local === true
  const parts = { host, client, store, tokens, tokenTtl: values.tokenTtl, log: out.log }
  await session.checkAccount()
  const { removed, upstream } = await revokeUser(parts, instance, user, { local, signal })
  if (json) return out.object({ user, removed, upstream })
  const deleted = `the token of ${user} is deleted here`
  if (upstream === 'revoked') out.say(`${deleted}, and revoked at ${host.url}`)
  else if (!removed) out.say(`${user} was not signed in, so there was nothing to revoke`)
  else out.say(local ? `${deleted}, and not revoked at the code host` : `${deleted}; it had expired`)
}

/**
 * Revokes a user's token here, and at the code host: with this shell's client or, if it has none, by the instance.
 * @throws RelayError `provider_failed` when the token is deleted here and may still be valid there; `storage`; as `callInstance`
 */
export async function revokeUser(
  parts: RenewParts & { readonly host: CodeHost },
  instance: RunningInstance | undefined,
  user: string,
  options: RevokeOptions = {},
): Promise<{ readonly removed: boolean; readonly upstream: 'revoked' | 'skipped' }> {
  const { client, host } = parts
  const { removed, upstream } =
    instance?.clientId && !client && !options.local
      ? await callInstance(instance, 'revoke', { userId: user }, options)
      : await revokeToken(parts, user, options)
  if (upstream === 'revoked' || upstream === 'skipped') return { removed, upstream }
  const deleted = `The token of ${user} is deleted here, but`
  const { url } = host
  if (typeof upstream === 'object') {
    const { message } = 'failed' in upstream ? upstream.failed : upstream
    throw new RelayError('provider_failed', `${deleted} ${url} did not revoke it: ${message}`)
  }
  const why = {
    unsupported: `${deleted} it is still valid at ${url}: only its user can revoke it, in the settings there`,
    elsewhere: `${deleted} it came from another code host than ${url}, where it may still be valid`,
    'no client': `${deleted} it is still valid at ${url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    expired: `The expired token of ${user} is deleted here, but its refresh token may still be valid at ${url}, since it could not be renewed`,
  }[upstream]
  throw new RelayError('provider_failed', why)
}
