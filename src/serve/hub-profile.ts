import { RelayError } from '../base/errors.js'
import type { StoreText } from '../base/settings.js'
import { saveProfile } from '../instance/profile.js'
import { Journal } from '../journal/journal.js'
import { fieldsOf } from '../json/parse.js'
import type { Database } from '../store/open.js'

/** Record that marks a profile as a hub's. */
const MARK = 'hub'

/** True if the data is that of a hub. @throws RelayError `storage` */
export async function isHub({ store }: Pick<Database, 'store'>): Promise<boolean> {
  return (await store.get(MARK)) !== undefined
}

/** Where the data of a hub is. */
interface HubPlace {
  readonly profile: string
  /** Folder of the profile. */
  readonly folder: string
  readonly store: StoreText
}

/**
 * Marks data as that of a hub, whose journal holds what no signature proves. @throws RelayError `settings` if it is that
 * of `relay serve`; `storage`
 */
export async function markHub(
  { store, sql }: Pick<Database, 'store' | 'sql'>,
  { profile, folder, store: kind }: HubPlace,
): Promise<void> {
  if (!(await isHub({ store }))) {
    const isUsed = (await new Journal(sql).newest()) > 0 || (await store.get('webhook-secret')) !== undefined
    if (isUsed)
      throw new RelayError(
        'settings',
        `Profile ${profile} is one of relay serve. Choose another for the hub with --profile`,
      )
    await store.put(MARK, { v: 1, url: null })
  }
  // So that the commands of workstations know it without its data.
  if (kind !== 'memory')
    saveProfile(folder, { store: kind, provider: null, providerUrl: null, sandbox: false, hub: true })
}

/** Saves the address at which workstations reach a hub. @throws RelayError `storage` */
export async function saveHubPlace({ store }: Pick<Database, 'store'>, url: string): Promise<void> {
  await store.put(MARK, { v: 1, url })
}

/** Address at which workstations reach the hub of this data. Undefined until it has run. @throws RelayError `storage` */
export async function hubPlace({ store }: Pick<Database, 'store'>): Promise<string | undefined> {
  const { url } = fieldsOf(await store.get(MARK))
  return typeof url === 'string' ? url : undefined
}
