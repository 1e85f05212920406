import { homedir } from 'node:os'
import type { Settings } from '../base/settings.js'

/** Where the tokens of a profile are kept, in a person's words. */
export function tokenPlace({
  store,
  profile,
  folder,
}: Pick<Settings, 'store' | 'profile' | 'folder'>): string {
  const places: Readonly<Record<string, string>> = {
    file: tilde(folder),
    keychain: `the keychain, service relay:${profile}`,
    memory: 'memory',
  }
  return places[store] ?? store
}

/** The path as a shell would take it, shorter where it lies in the user's home. */
export function tilde(file: string): string {
  const home = homedir()
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}
