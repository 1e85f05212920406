import { isRemote } from '../../browser/ssh.js'
import type { Context } from '../../context.js'

/** Systems whose windows are drawn by a server that a variable names. */
const WITH_SERVER: ReadonlySet<NodeJS.Platform> = new Set(['linux', 'freebsd', 'openbsd'])

/** Any of them names a display, or a browser that needs none. WSL opens the browser of Windows. */
const NAMES = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME', 'BROWSER'] as const

/** Whether a browser that relay opens can be seen by its user. Over SSH it would open on the other machine. */
export function hasDisplay(env: Context['env'], platform: NodeJS.Platform = process.platform): boolean {
  if (isRemote(env)) return false
  return !WITH_SERVER.has(platform) || NAMES.some((name) => Boolean(env[name]))
}
