// Apart from the settings, since a browser's page reads it too.

export const PROVIDER_NAMES = ['github', 'gitea', 'sandbox'] as const
export type ProviderName = (typeof PROVIDER_NAMES)[number]

/** Whether a source is the code host. No other sender can have a code host's name. */
export function isCodeHost(source: string): boolean {
  return PROVIDER_NAMES.some((name) => name === source)
}
