import type { TargetStatus } from '../../../dispatch/dispatcher.js'

/** `3 for app, 1 for deploy.sh`; undefined when nothing waits. */
export function waitingText(
  targets: readonly Pick<TargetStatus, 'id' | 'queued'>[],
  nameOf: (id: string) => string,
): string | undefined {
  const waiting = targets.filter(({ queued }) => queued > 0)
  if (waiting.length === 0) return undefined
  return waiting.map(({ id, queued }) => `${queued} for ${nameOf(id)}`).join(', ')
}
