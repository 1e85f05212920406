import { createCached } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import { labelOf } from '../dispatch/routes.js'
import { type SavedHook, SavedHooks } from '../codehost/hooks.js'
import type { ForwardCounts } from '../journal/types.js'
import type { TokenOwner } from '../tokens/tokens.js'
import type { InstanceState } from './api.js'
import { targetNames } from './lines.js'
import type { InspectorParts } from './parts.js'
import { publicId } from './target-ids.js'

/** Reads the state of the instance. */
export interface StateReader {
  /** As it is now; what takes long to find may be {@link CACHE_MS} old. Holds no token. */
  read(): Promise<InstanceState>
}

/** 5 s: counting a million forwards takes a second of the database's time, and a keychain may be slow to answer. */
const CACHE_MS = 5000

/** What takes long to find. */
interface Slow {
  readonly counts: ReadonlyMap<string, ForwardCounts>
  readonly deliveries: number
  readonly users: readonly TokenOwner[]
  readonly hooks: readonly SavedHook[]
}

export function createStateReader(parts: InspectorParts): StateReader {
  const slow = createCached(CACHE_MS, () => readSlow(parts))
  return { read: async () => describe(parts, await slow()) }
}

async function readSlow({ journal, tokens, store, host, log }: InspectorParts): Promise<Slow> {
  const [counts, deliveries, hooks, users] = await Promise.all([
    journal.counts(),
    journal.count(),
    new SavedHooks(store, host).list(),
    tokens.owners().catch((error: unknown) => {
      // A locked keychain: everything else is shown all the same.
      log.warn(`the inspector cannot list who is signed in: ${toRelayError(error).message}`)
      return []
    }),
  ])
  return { counts, deliveries, hooks, users }
}

function describe(parts: InspectorParts, { counts, deliveries, hooks, users }: Slow): InstanceState {
  const { profile, host, url, routing, running } = parts
  const nameOf = targetNames(parts, [])
  const tunnel = running.tunnel()
  return {
    profile,
    provider: host.name,
    url: url(),
    startedAt: running.startedAt(),
    deliveries,
    targets: running.targets().map(({ id, state, queued, since, nextProbeAt }) => ({
      id: publicId(id),
      name: nameOf(id),
      label: labelOf(id.replace(/^[^=]*=/, '*=')),
      match: id.slice(0, id.indexOf('=')),
      state,
      waiting: queued,
      succeeded: counts.get(id)?.succeeded ?? 0,
      failed: counts.get(id)?.failed ?? 0,
      ...(since !== undefined && { since }),
      ...(nextProbeAt !== undefined && { nextProbeAt }),
    })),
    ignored: routing.ignore.map(({ text }) => text),
    tunnel: tunnel ? { state: tunnel.state, payloadUrl: tunnel.url, detail: tunnel.why } : null,
    hooks: hookStates(hooks, running.hookProblems()),
    users: users.map(({ userId, expiresAt, origin }) => ({ userId, expiresAt, origin })),
  }
}

/** Those that were made, and those that could not be. */
function hookStates(
  saved: readonly SavedHook[],
  problems: ReadonlyMap<string, string>,
): InstanceState['hooks'] {
  const made = saved.filter(({ id }) => id !== null)
  const states = made.map(({ owner, repo, url, permanent }) => {
    const name = `${owner}/${repo}`
    return { repo: name, url, permanent, problem: problems.get(name) ?? null }
  })
  const names = new Set(states.map(({ repo }) => repo))
  const missing = [...problems].filter(([repo]) => !names.has(repo))
  return [...states, ...missing.map(([repo, problem]) => ({ repo, url: null, permanent: false, problem }))]
}
