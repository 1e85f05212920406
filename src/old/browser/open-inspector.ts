import { setTimeout as wait } from 'node:timers/promises'
import type { Cancellable } from '../../base/abort.js'
import { openBrowser } from './browser.js'
import { writeRedirectFile } from './redirect-file.js'

export interface InspectorToOpen {
  /** The instance's address. */
  readonly url: string
  /** A one-time code. */
  readonly code: string
  /** What to show: the number of an entry, or `last`. Default: the list. */
  readonly entry?: string | undefined
  /** Whether the code still waits to be used. */
  readonly isPending: () => Promise<boolean>
}

export interface BrowserPlace extends Cancellable {
  /** The data folder. */
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** `not started`: there is no browser. `not used`: it did not open the page in time. */
export type Opened = 'opened' | 'not started' | 'not used'

/** A minute: a browser that is started takes seconds. */
const LIMIT_MS = 60_000
/** Short enough that the shell seems to be back at once. */
const POLL_MS = 150

/** Opens the inspector in the user's browser, through a private file that is removed once it was used or a minute later. */
export async function openInspector(
  { url, code, entry, isPending }: InspectorToOpen,
  { home, env, signal }: BrowserPlace,
): Promise<Opened> {
  const fields = { code, ...(entry !== undefined && { entry }) }
  using file = writeRedirectFile(home, { url: `${url}/inspect/open`, fields })
  if (!(await openBrowser(file.url, env['BROWSER'], { signal }))) return 'not started'
  const end = performance.now() + LIMIT_MS
  while (performance.now() < end) {
    if (!(await isPending())) return 'opened'
    await wait(POLL_MS, undefined, signal ? { signal } : {})
  }
  return 'not used'
}
