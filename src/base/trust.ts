import { lstatSync, readlinkSync, realpathSync, statfsSync, type Stats } from 'node:fs'
import path from 'node:path'
import { errorReason } from './errors.js'
import { shellWord } from './text.js'

type Found = Pick<Stats, 'uid' | 'gid' | 'mode'>

/** System calls and user id that decide whether a file is trusted. A test replaces them. */
export interface System {
  /** Effective user id of this process. Undefined on Windows, where nothing is checked. */
  readonly uid: number | undefined
  readonly lstat: (file: string) => Found
  readonly realpath: (file: string) => string
}

const SYSTEM: System = { uid: process.geteuid?.(), lstat: lstatSync, realpath: realpathSync }

type Env = Readonly<Record<string, string | undefined>>

/**
 * Trusted owners: root, the user, and for root under sudo the calling user (SUDO_UID), as in git (git-config,
 * safe.directory).
 */
function ownersFor(uid: number, { SUDO_UID: sudo = '' }: Env): ReadonlySet<number> {
  return new Set([0, uid, ...(uid === 0 && /^\d+$/.test(sudo) ? [Number(sudo)] : [])])
}

/**
 * True if an untrusted user can write to the file. A group with the number of a user is that user's private group
 * (Debian, Fedora); group 0 is root's.
 */
function isOpen({ gid, mode }: Found, owners: ReadonlySet<number>): boolean {
  return (mode & OTHERS_WRITE) !== 0 || (!owners.has(gid) && (mode & GROUP_WRITE) !== 0)
}

const GROUP_WRITE = 0o020
const OTHERS_WRITE = 0o002

const ofStranger = (name: string, owner: number): string =>
  `${name} belongs to user ${owner}, not to you or root`
const openToStrangers = (name: string, owner: number): string =>
  `other users can write to ${name}, which belongs to user ${owner}`

/**
 * Returns a function that explains why a file of a working folder is not trusted. It returns undefined if the file, its
 * folder, and the targets of links belong to the user or root, and no other user can write to them.
 */
export function createTrust(
  env: Env,
  { uid, lstat, realpath }: System = SYSTEM,
): (file: string) => string | undefined {
  if (uid === undefined) return () => undefined
  const owners = ownersFor(uid, env)
  return (file) => {
    try {
      const target = realpath(file)
      const stranger = [file, path.dirname(file), target, path.dirname(target)]
        .map((name) => ({ name, owner: lstat(name).uid }))
        .find(({ owner }) => !owners.has(owner))
      if (stranger) return ofStranger(stranger.name, stranger.owner)
      const found = lstat(target)
      if (isOpen(found, owners)) return openToStrangers(target, found.uid)
    } catch (cause) {
      return `its owner cannot be determined (${errorReason(cause)})`
    }
    return undefined
  }
}

let caller: Env = {}

/** Sets the environment in which sudo names the calling user. Called once, when the program starts. */
export function trustCaller(env: Env): void {
  caller = env
}

/**
 * Types of file systems whose modes chmod may not change: 9P and drvfs (WSL's /mnt/c), FAT, exFAT, NTFS, FUSE, SMB
 * (`man 2 statfs`).
 */
const FIXED_MODES: ReadonlySet<number> = new Set([
  0x01021997, 0x53464846, 0x4d44, 0x2011bab0, 0x7366746e, 0x5346544e, 0x65735546, 0x517b, 0xff534d42,
  0xfe534d42,
])

/** Further advice for a file system on which chmod changes nothing. Empty for others. */
export function chmodAdvice(place: string): string {
  try {
    return FIXED_MODES.has(statfsSync(place).type) ? `. ${CHMOD_ADVICE}` : ''
  } catch {
    return ''
  }
}

/** Source: Microsoft's page on wsl.conf, section automount. */
export const CHMOD_ADVICE =
  'If chmod changes nothing there, as on a Windows drive of WSL (/mnt/c): move it to the Linux file system, such as your home folder; or write [automount] and below it options = "metadata,umask=022" into /etc/wsl.conf, and run wsl.exe --shutdown'

/** Reason why other users can change a path, and the command that prevents it. */
export interface UntrustedPath {
  readonly why: string
  readonly fix: string
}

/** Linux's own limit for links in one path. */
const MAX_LINKS = 40

/**
 * Looks up a path that only the user and root may be able to change. Every link and folder on the way counts, since its
 * owner could put another file there. A folder with the sticky bit, such as /tmp or a new tmpfs, may be open to all:
 * no user can replace another's file there, and a file that another user adds is refused.
 * @returns undefined if nothing is there, or it cannot be reached
 */
export function inspectPlace(file: string): Found | UntrustedPath | undefined {
  const { uid } = SYSTEM
  const owners = ownersFor(uid ?? 0, caller)
  const chown = uid === 0 ? 'chown' : 'sudo chown'
  const ofOther = (at: string, owner: number): UntrustedPath => ({
    why: ofStranger(at, owner),
    fix: `Check what is in it, then make it yours with ${chown} -hR ${uid} ${shellWord(at)}`,
  })
  const root = path.parse(path.resolve(file)).root
  const rest = partsOf(path.resolve(file).slice(root.length))
  let found: Stats | undefined
  let at = root
  try {
    // The root folder's owner can change everything. In a user namespace, root's number looks like that.
    const above = new Set([...owners, lstatSync(root).uid])
    for (let links = 0; ;) {
      const name = rest.shift()
      if (name === undefined) break
      const next = path.join(at, name)
      found = lstatSync(next)
      if (uid !== undefined && found.isSymbolicLink() && !owners.has(found.uid))
        return ofOther(next, found.uid)
      if (found.isSymbolicLink()) {
        if (++links > MAX_LINKS) return undefined
        const target = readlinkSync(next)
        if (path.isAbsolute(target)) at = root
        rest.unshift(...partsOf(path.isAbsolute(target) ? target.slice(root.length) : target))
        continue
      }
      at = next
      const isOnWay = rest.length > 0
      if (isOnWay && !found.isDirectory()) return undefined
      if (uid === undefined) continue
      if (!(isOnWay ? above : owners).has(found.uid)) return ofOther(at, found.uid)
      if (isOpen(found, owners) && !(found.isDirectory() && (found.mode & STICKY) !== 0))
        return {
          why: openToStrangers(at, found.uid),
          fix: `Close it with chmod go-w ${shellWord(at)}${chmodAdvice(at)}`,
        }
    }
  } catch {
    return undefined
  }
  return found
}

const STICKY = 0o1000

function partsOf(relative: string): string[] {
  return relative.split(path.sep).filter((part) => part !== '' && part !== '.')
}
