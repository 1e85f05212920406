import { homedir } from 'node:os'
import type { Settings, StoreKind } from '../../base/settings.js'

/** A description of where the tokens of a profile are stored. */
export function tokenPlace({
  store,
  profile,
  folder,
}: Pick<Settings, 'store' | 'profile' | 'folder'>): string {
  if (typeof store !== 'string') return `the shared store ${String(store)}`
  const places: Readonly<Record<StoreKind, string>> = {
    file: tilde(folder),
    keychain: `the keychain, service relay:${profile}`,
    memory: 'memory',
  }
  return places[store]
}

/** A path with `~` for the user's home. */
export function tilde(file: string): string {
  const home = homedir()
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}
