import { html } from 'hono/html'
import type { Issue } from '../model.js'

/** Open, merged or locked, at a glance. Nothing here is closed in any other way. */
export function stateBadge({ pull, locked }: Issue) {
  if (pull?.merge) return html`<span class="state merged">Merged</span>`
  return locked ? html`<span class="state">Locked</span>` : html`<span class="state open">Open</span>`
}
