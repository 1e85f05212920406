import type { EnsuredHook } from '../../hooks/ensure.js'

/** `hook of octo/demo created: https://smee.io/…` */
export function hookStateText(repo: string, { hook, created, repaired }: EnsuredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  return `hook of ${repo} ${what}: ${hook.url}`
}
