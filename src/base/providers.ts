// Separate from the settings because the inspector's page, which runs in a browser, imports it.

export const PROVIDER_NAMES = ['github', 'gitea', 'sandbox'] as const
export type ProviderName = (typeof PROVIDER_NAMES)[number]

/** True if a source is the code host. No other sender can have a code host's name. */
export function isCodeHost(source: string): boolean {
  return PROVIDER_NAMES.some((name) => name === source)
}
