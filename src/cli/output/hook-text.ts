import type { RegisteredHook } from '../../hooks/registration.js'

/** `hook of octo/demo created: https://smee.io/…` */
export function hookStateText(repo: string, { hook, created, repaired, found }: RegisteredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  const others = found
    ? ' (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)'
    : ''
  return `hook of ${repo} ${what}: ${hook.url}${others}`
}
