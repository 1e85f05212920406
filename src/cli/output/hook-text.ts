import type { EnsuredHook } from '../../hooks/ensure.js'

/** `hook of octo/demo created: https://smee.io/…` */
export function hookStateText(repo: string, { hook, created, repaired }: EnsuredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  return `hook of ${repo} ${what}: ${hook.url}`
}

/** `webhook of the App relay-1a2b3c4d leads here: https://smee.io/…` */
export function appHookText(
  app: string,
  { url, repaired }: { readonly url: string; readonly repaired: readonly string[] },
): string {
  const what = repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'leads here'
  return `webhook of ${app} ${what}: ${url}`
}
