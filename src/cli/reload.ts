import { watch, type FSWatcher } from 'node:fs'
import path from 'node:path'
import type { Context } from './context.js'
import { userFile } from './settings/read.js'
import { projectFolders, PROJECT_FILE } from './settings/project.js'

/** Editors write a file in several steps; what comes within this many milliseconds is one change. */
const SETTLE_MS = 100

/**
 * Calls `reload` at SIGHUP, and when a settings file changes, appears or goes. A folder that cannot be watched is left to
 * SIGHUP.
 */
export function onSettingsChange(context: Context, reload: () => void): Disposable {
  let timer: NodeJS.Timeout | undefined
  const soon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(reload, SETTLE_MS)
  }
  const files = [
    ...projectFolders(context.cwd).map((folder) => path.join(folder, PROJECT_FILE)),
    userFile(context),
  ]
  const watchers = files.map((file) => watchFile(file, soon))
  const stopHearing = context.onHangup(soon)
  return {
    [Symbol.dispose]() {
      clearTimeout(timer)
      stopHearing()
      for (const watcher of watchers) watcher?.close()
    },
  }
}

/** Watches the folder, since the file may be replaced by another of its name. */
function watchFile(file: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(path.dirname(file), (_, name) => {
      if (name === path.basename(file)) changed()
    })
    return watcher.on('error', () => watcher.close())
  } catch {
    return undefined
  }
}
