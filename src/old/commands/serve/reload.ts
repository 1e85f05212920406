import { watch, type FSWatcher } from 'node:fs'
import path from 'node:path'
import type { Context } from '../../context.js'
import { userFile } from '../../settings/file.js'
import { projectFolders, PROJECT_FILE } from '../../settings/project.js'
import { createTrust } from '../../settings/trust.js'

/** Editors write a file in several steps; changes within this time count as one. */
const SETTLE_MS = 100

/** What watches the settings files, until it is disposed of. */
export interface SettingsWatch extends Disposable {
  /** Calls `reload` whenever the settings may have changed, also if that was since the watch began. */
  start(reload: () => void): void
}

/**
 * Watches from now on, to be called before the settings are read: SIGHUP, and a settings file that changes, appears or disappears.
 * If a folder cannot be watched, only SIGHUP reloads.
 */
export function watchSettings(context: Context): SettingsWatch {
  let timer: NodeJS.Timeout | undefined
  let onChange: (() => void) | undefined
  let isMissed = false
  const soon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (onChange) onChange()
      else isMissed = true
    }, SETTLE_MS)
  }
  const files = [
    ...projectFolders(context.cwd, createTrust(context.env)).map((folder) => path.join(folder, PROJECT_FILE)),
    userFile(context),
  ]
  const watchers = files.map((file) => watchFile(file, soon))
  const stopListening = context.onHangup(soon)
  return {
    start(reload) {
      onChange = reload
      if (isMissed) reload()
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      stopListening()
      for (const watcher of watchers) watcher?.close()
    },
  }
}

/** Watches the folder, since another file can replace this one under its name. */
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
