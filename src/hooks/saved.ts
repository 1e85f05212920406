import { z } from 'zod'
import type { Provider, RepoTarget } from '../providers/provider.js'
import type { Store } from '../store/kv.js'

/** A hook that this profile made or uses. */
export type SavedHook = Readonly<z.infer<typeof schema>>

const schema = z.object({
  v: z.literal(1),
  owner: z.string(),
  repo: z.string(),
  /** Null: it was about to be created. */
  id: z.int().nullable(),
  url: z.string(),
  /** Whether the user chose this address: then it stays when that of the tunnel changes. */
  chosen: z.boolean(),
  /** Null: every event. */
  events: z.array(z.string()).nullable(),
  /** Whether it outlives `relay serve`: made by `relay hook add`, or there before. */
  permanent: z.boolean(),
})

type Host = Pick<Provider, 'origin'>

/** One for each repository of a code host, whose names have no capitals of their own. */
function keyOf({ origin }: Host, { owner, repo }: RepoTarget): string {
  return `hook:${origin} ${owner}/${repo}`.toLowerCase()
}

/** @throws RelayError `storage` */
export async function readHook(
  store: Pick<Store, 'get'>,
  host: Host,
  repo: RepoTarget,
): Promise<SavedHook | undefined> {
  return schema.safeParse(await store.get(keyOf(host, repo))).data
}

/** The hooks of this code host, by the name of their repository. @throws RelayError `storage` */
export async function listSavedHooks(
  store: Pick<Store, 'get' | 'list'>,
  { origin }: Host,
): Promise<readonly SavedHook[]> {
  const keys = await store.list(`hook:${origin} `.toLowerCase())
  const records = await Promise.all(keys.map((key) => store.get(key)))
  return records.flatMap((record) => schema.safeParse(record).data ?? [])
}

/** @throws RelayError `storage` */
export async function saveHook(
  store: Pick<Store, 'put'>,
  host: Host,
  { owner, repo }: RepoTarget,
  hook: Omit<SavedHook, 'v' | 'owner' | 'repo'>,
): Promise<void> {
  const record: SavedHook = { v: 1, owner, repo, ...hook }
  await store.put(keyOf(host, { owner, repo }), record)
}

/** @throws RelayError `storage` */
export async function forgetHook(store: Pick<Store, 'delete'>, host: Host, repo: RepoTarget): Promise<void> {
  await store.delete(keyOf(host, repo))
}
