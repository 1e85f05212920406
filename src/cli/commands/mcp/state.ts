import { inTime } from '../../../base/wait.js'
import { toRelayError } from '../../../base/errors.js'
import { SavedHooks } from '../../../codehost/hooks.js'
import { readTunnels } from '../../../serve/tunnel.js'
import type { Shell } from '../../command.js'
import { type Attached, attach, openData, startCommand } from '../../profile.js'
import { openSession } from '../../session.js'
import { type Fields, hear, marked } from './results.js'

/** 2 s for the keychain, which may ask its user, and then answers after a minute. */
const KEYCHAIN_LIMIT_MS = 2000

/** What runs, where deliveries come from and go to, and whether the user is signed in. Has no token and no secret. */
export async function readState(shell: Shell, flags: Fields): Promise<Fields> {
  const attached = await attach(shell, flags, 'any')
  const { instance, profile } = attached
  const { pid, url, startedAt, sandbox } = instance ?? {}
  const routes = await hear(shell, 'routes', flags)
  const sources = await hear(shell, 'source list', flags)
  await using data = await openData(attached)
  const tunnels = instance && data ? await readTunnels(data.store, instance.pid) : []
  return {
    profile,
    running: instance ? { pid, url, startedAt, sandbox } : null,
    start: instance ? null : startCommand(attached),
    routes: routes.objects.map(marked),
    sources: sources.objects.map(marked),
    tunnels: tunnels.map(({ source, state, url, why }) => ({ source, state, url, problem: why })),
    ...(await readHost(shell, attached).catch((error: unknown) => ({
      codeHost: null,
      notes: [`Hooks and sign-in are not known: ${toRelayError(error).message}`],
    }))),
  }
}

/** The hooks of the profile at its code host, and whether the user is signed in there. */
async function readHost(shell: Shell, attached: Attached): Promise<Fields> {
  await using session = await openSession(shell, attached)
  const { database, host, tokens, user } = session
  const hooks = await new SavedHooks(database.store, host).list()
  const found = async () => (await tokens.get(user)) ?? tokens.refreshable(user)
  const signedIn = (await inTime(KEYCHAIN_LIMIT_MS, found()))?.origin === host.origin
  const made = hooks.map(({ owner, repo, url, permanent }) => ({ repo: `${owner}/${repo}`, url, permanent }))
  return { codeHost: { url: host.url, user, signedIn, hooks: made }, notes: [] }
}
