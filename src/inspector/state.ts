import { pathOf, shownSource } from '../base/source-names.js'
import { createHmac, randomBytes } from 'node:crypto'
import { createCached, awaitWithin } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type SavedHook, SavedHooks } from '../codehost/hooks.js'
import { labelOf, type Route, shortNames, splitId } from '../dispatch/routes.js'
import type { Routing } from '../dispatch/routing.js'
import type { Activity } from '../events/status.js'
import type { MinuteCounts, Summary } from '../journal/types.js'
import type { InstanceState, Timeline, TunnelState } from './api.js'
import type { InspectorParts } from './parts.js'
import { KEYCHAIN_LIMIT_MS } from '../tokens/tokens.js'
import type { TunnelStatus } from '../instance/protocol.js'

/** Time for which the users are cached: 5 s, since reading them decrypts every token. */
const CACHE_MS = 5000

/** Makes a function that reads the current state of the instance, without tokens. Users may be {@link CACHE_MS} old. */
export function createStateReader(parts: InspectorParts): () => Promise<InstanceState> {
  const { place, host, url, sources, routing, instance, journal, store, tokens, log } = parts
  const saved = new SavedHooks(store, host)
  const users = createCached(CACHE_MS, async () => {
    try {
      return await awaitWithin(KEYCHAIN_LIMIT_MS, tokens.owners())
    } catch (error) {
      log.warn(`the inspector cannot list who is signed in: ${toRelayError(error).message}`)
      return null
    }
  })
  return async () => {
    const [counts, deliveries, hooks, owners] = await Promise.all([
      journal.counts(),
      journal.count(),
      saved.list(),
      users(),
    ])
    const nameOf = targetNames(routing)
    const stored = new Set(routing.routes.flatMap(({ id, ofProfile }) => (ofProfile ? [id] : [])))
    const status = instance.activity()
    const tunnels = status.tunnels.map(tunnelState)
    const sourceTunnels = tunnels.filter(({ source }) => shownSource(source) !== undefined)
    return {
      profile: place.profile,
      ...(place.sandbox && { sandbox: true as const }),
      provider: host.name,
      url,
      startedAt: status.startedAt,
      deliveries,
      targets: status.targets.map(({ id, state, since, nextProbeAt }) => ({
        id: publicId(id),
        name: nameOf(id),
        label: targetLabel(id),
        match: splitId(id).match,
        state,
        waiting: counts.get(id)?.waiting ?? 0,
        failed: counts.get(id)?.failed ?? 0,
        ...(stored.has(id) && { ofProfile: true as const }),
        ...(since !== undefined && { since }),
        ...(nextProbeAt !== undefined && { nextProbeAt }),
      })),
      ignored: routing.ignore.map(({ text }) => text),
      tunnel: tunnels.find(({ source }) => shownSource(source) === undefined) ?? null,
      sources: [...sources.values()].flatMap(({ name, sender: { scheme } }) =>
        shownSource(name) === undefined ? [] : [{ name, scheme, url: url + pathOf(name) }],
      ),
      ...(sourceTunnels.length > 0 && { sourceTunnels }),
      hooks: hookStates(hooks, status.hookProblems),
      users: owners?.map(({ userId, expiresAt, origin }) => ({ userId, expiresAt, origin })) ?? null,
    }
  }
}

function tunnelState({ source, state, url, why, fix }: TunnelStatus): TunnelState {
  return { source, state, payloadUrl: url, detail: fix === undefined ? why : `${why}: ${fix}` }
}

/** Lists the hooks that were made, and those that failed. */
function hookStates(saved: readonly SavedHook[], problems: Activity['hookProblems']): InstanceState['hooks'] {
  const made = saved.flatMap(({ id, owner, repo, url, permanent }) =>
    id === null ? [] : [{ repo: `${owner}/${repo}`, url, permanent }],
  )
  const missing = [...problems.keys()].filter((repo) => made.every((hook) => hook.repo !== repo))
  const all = [...made, ...missing.map((repo) => ({ repo, url: null, permanent: false }))]
  return all.map((hook) => ({ ...hook, problem: problems.get(hook.repo) ?? null }))
}

/** The forwards of an entry, by target. */
export interface Forwarded {
  readonly forwards: Summary['forwards']
}

const MINUTE_MS = 60_000
const MINUTES = 60

/** Counts the last hour by minute. */
export async function readTimeline({ journal, refusals, clock }: InspectorParts): Promise<Timeline> {
  const last = Math.floor(clock() / MINUTE_MS)
  const first = last - MINUTES + 1
  const found = await journal.minutes(first * MINUTE_MS, (last + 1) * MINUTE_MS)
  const byMinute = new Map<number, MinuteCounts>(found.map((each) => [each.minute, each]))
  const refused = refusals.list.minutes()
  return {
    minutes: Array.from({ length: MINUTES }, (_, i) => {
      const { received = 0, failed = 0 } = byMinute.get(first + i) ?? {}
      return { at: (first + i) * MINUTE_MS, received, failed, refused: refused.get(first + i) ?? 0 }
    }),
  }
}

/** Makes a function that returns the short name of a target, for those of the routes and other targets of entries. */
export function targetNames(
  { routes }: Routing,
  summaries: readonly Forwarded[] = [],
): (id: string) => string {
  const others = new Set(summaries.flatMap(({ forwards }) => Object.keys(forwards)))
  const names = shortNames([...routes, ...[...others].map((id) => ({ id }))])
  return (id) => names.get(id) ?? labelOf(id)
}

/** Formats the address or command of a target, without its match and passwords. */
export function targetLabel(id: string): string {
  return labelOf(`*=${splitId(id).target}`)
}

/** Key of {@link publicId}, for this run only. */
const KEY = randomBytes(32)

/**
 * Makes the id of a target for the browser. The real id is its address or command, which can hold a password. Changes
 * at a restart.
 */
export function publicId(id: string): string {
  return createHmac('sha256', KEY).update(id).digest('hex').slice(0, 16)
}

/**
 * Finds the targets of ids from the browser, without duplicates.
 * @throws RelayError `bad_request` for one that is not configured, or no longer
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
