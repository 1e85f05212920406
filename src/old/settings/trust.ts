import { lstatSync, realpathSync, type Stats } from 'node:fs'
import path from 'node:path'
import { errorReason } from '../../base/errno.js'
import { RelayError } from '../../base/errors.js'
import type { Variables } from './origin.js'

/** The properties that decide whether a file is trusted. */
export type Ownership = Pick<Stats, 'uid' | 'gid' | 'mode'>

/** The calls to the operating system; tests replace them. */
export interface System {
  /** The user whose rights this process has; undefined on Windows, where nothing is checked. */
  readonly uid: number | undefined
  readonly lstat: (file: string) => Ownership
  readonly realpath: (file: string) => string
}

const SYSTEM: System = { uid: process.geteuid?.(), lstat: lstatSync, realpath: realpathSync }

/** Tells settings files of the user and of root from those of other users, which could run commands as this user. */
export interface Trust {
  /** Why the file is not trusted, naming file and owner. Undefined when it is. */
  readonly distrust: (file: string) => string | undefined
  /**
   * The same check for an open file, in case another replaced it since.
   * @throws RelayError `settings`
   */
  readonly accept: (file: string) => (opened: Ownership) => void
}

/** Write permission of the group, and of all others. */
const GROUP_WRITE = 0o020
const OTHERS_WRITE = 0o002

/**
 * Trusts a file when it and its folder belong to the user or root, and no other user can write to the file. For a symbolic
 * link, its target and the target's folder are checked too. Under sudo, root trusts the calling user (SUDO_UID), as git does
 * (git-config, safe.directory).
 */
export function createTrust(env: Variables, system: System = SYSTEM): Trust {
  const { uid, lstat, realpath } = system
  const owners = uid === undefined ? undefined : new Set([0, uid, ...(uid === 0 ? sudoUser(env) : [])])

  const distrust = (file: string, opened?: Ownership): string | undefined => {
    if (!owners) return undefined
    try {
      const target = realpath(file)
      const stats = opened ?? lstat(target)
      const stranger = [file, path.dirname(file), target, path.dirname(target)]
        .map((name) => ({ name, owner: name === target ? stats.uid : lstat(name).uid }))
        .find(({ owner }) => !owners.has(owner))
      if (stranger) return `${stranger.name} belongs to user ${stranger.owner}, not to you or root`
      if (isOpen(stats)) return `other users can write to ${target}, which belongs to user ${stats.uid}`
    } catch (cause) {
      return `its owner cannot be determined (${errorReason(cause)})`
    }
    return undefined
  }

  return {
    distrust,
    accept: (file) => (opened) => {
      const why = distrust(file, opened)
      if (why !== undefined)
        throw new RelayError('settings', `${file} was replaced while relay read it: ${why}`)
    },
  }
}

/**
 * Whether others can write to the file. A group with the number of the file's owner is that user's private group (Debian,
 * Fedora); group 0 is root's.
 */
function isOpen({ uid, gid, mode }: Ownership): boolean {
  const isPrivate = gid === uid || gid === 0
  return (mode & OTHERS_WRITE) !== 0 || (!isPrivate && (mode & GROUP_WRITE) !== 0)
}

function sudoUser({ SUDO_UID: user = '' }: Variables): number[] {
  return /^\d+$/.test(user) ? [Number(user)] : []
}
