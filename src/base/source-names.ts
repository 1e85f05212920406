// Separate from the settings because the inspector's page, which runs in a browser, imports it.

export const PROVIDER_NAMES = ['github', 'gitea', 'gitlab', 'sandbox'] as const
export type ProviderName = (typeof PROVIDER_NAMES)[number]

/**
 * Names of code hosts' sources that differ from the code host's. `gitlab` is a source of its own: a relay with another
 * code host can receive from GitLab, too, with the event names of its headers.
 */
const HOST_SOURCES: Readonly<Record<string, string>> = {
  gitlab: 'gitlab-host',
}

/** Name of the source that receives from a code host, which is also the name of its scheme. */
export function hostSource(provider: string): string {
  return HOST_SOURCES[provider] ?? provider
}

/**
 * Name of a source where several are listed. Undefined for the code host, which is the source at `/webhook` and has no
 * name there. No other source can have a code host's name.
 */
export function shownSource(source: string): string | undefined {
  return PROVIDER_NAMES.some((name) => hostSource(name) === source) ? undefined : source
}

/** Path of a source's address. */
export function pathOf(source: string): string {
  return shownSource(source) === undefined ? '/webhook' : `/webhook/${source}`
}

/** Name of something of a source, among those of all sources: `push`, `stripe/invoice.paid`. */
export function qualified(source: string, name: string): string {
  return shownSource(source) === undefined ? name : `${source}/${name}`
}

/**
 * Words for one of a source's secrets: `current webhook secret`, `previous secret of stripe`, `key that relay has for
 * discord`.
 */
export function secretWords(source: string, which: string): string {
  if (which === 'own') return `key that relay has for ${source}`
  return shownSource(source) === undefined ? `${which} webhook secret` : `${which} secret of ${source}`
}
