import type { RegisteredHook } from '../../codehost/hooks.js'

/** `hook of octo/demo created: https://smee.io/…` */
export function hookStateText(repo: string, { hook, created, repaired, found }: RegisteredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  const others = found
    ? ' (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)'
    : ''
  return `hook of ${repo} ${what}: ${hook.url}${others}`
}

/** `webhook of the App relay-1a2b3c4d leads here: https://smee.io/…` */
export function appHookText(
  app: string,
  { url, repaired }: { readonly url: string; readonly repaired: readonly string[] },
): string {
  const what = repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'leads here'
  return `webhook of ${app} ${what}: ${url}`
}
