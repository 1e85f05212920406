import { lstatSync, readlinkSync, realpathSync, statfsSync, type Stats } from 'node:fs'
import path from 'node:path'
import { errorReason } from './errors.js'
import { shellWord } from './text.js'

type Found = Pick<Stats, 'uid' | 'gid' | 'mode'>

/** What decides whether a file is trusted; a test replaces it. */
export interface System {
  /** The user whose rights this process has; undefined on Windows, where nothing is checked. */
  readonly uid: number | undefined
  readonly lstat: (file: string) => Found
  readonly realpath: (file: string) => string
}

const SYSTEM: System = { uid: process.geteuid?.(), lstat: lstatSync, realpath: realpathSync }

type Env = Readonly<Record<string, string | undefined>>

/** Root, the user, and for root under sudo the calling user (SUDO_UID), as git does (git-config, safe.directory). */
function ownersFor(uid: number, { SUDO_UID: sudo = '' }: Env): ReadonlySet<number> {
  return new Set([0, uid, ...(uid === 0 && /^\d+$/.test(sudo) ? [Number(sudo)] : [])])
}

/**
 * Whether a user who is not trusted can write to it. A group with the number of a user is that user's private group (Debian, Fedora); group
 * 0 is root's.
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
 * Says why a file of a working folder is not trusted; undefined when it, its folder, and those that a link leads to are the user's or
 * root's, and no other user can write to it.
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

/** Says once, when the program starts, what sudo has put into its environment. */
export function trustCaller(env: Env): void {
  caller = env
}

/** File systems whose modes chmod may not change: 9P and drvfs (WSL's /mnt/c), FAT, exFAT, NTFS, FUSE, SMB (`man 2 statfs`). */
const FIXED_MODES: ReadonlySet<number> = new Set([
  0x01021997, 0x53464846, 0x4d44, 0x2011bab0, 0x7366746e, 0x5346544e, 0x65735546, 0x517b, 0xff534d42,
  0xfe534d42,
])

/** What else to do where chmod changes nothing; empty where it does. */
export function whereFixed(place: string): string {
  try {
    return FIXED_MODES.has(statfsSync(place).type) ? `. ${FIXED}` : ''
  } catch {
    return ''
  }
}

/** By Microsoft's page on wsl.conf, section automount. */
export const FIXED =
  'If chmod changes nothing there, as on a Windows drive of WSL (/mnt/c): move it to the Linux file system, such as your home folder; or write [automount] and below it options = "metadata,umask=022" into /etc/wsl.conf, and run wsl.exe --shutdown'

/** Why a place is not the user's alone, and the command that makes it so. */
export interface Hostile {
  readonly why: string
  readonly fix: string
}

/** As many as Linux follows. */
const MAX_LINKS = 40

/**
 * What lies at a path that only the user and root can change: every link and every folder on the way counts, since whoever can write to one
 * can put another place there. A folder with the sticky bit, such as /tmp or a new tmpfs, may be open to all: nobody can replace what others
 * have there, and what they put there is theirs, so it is refused itself.
 * @returns undefined if nothing is there, or it cannot be reached
 */
export function inspectPlace(file: string): Found | Hostile | undefined {
  const { uid } = SYSTEM
  const owners = ownersFor(uid ?? 0, caller)
  const chown = uid === 0 ? 'chown' : 'sudo chown'
  const ofOther = (at: string, owner: number): Hostile => ({
    why: ofStranger(at, owner),
    fix: `Check what is in it, then make it yours with ${chown} -hR ${uid} ${shellWord(at)}`,
  })
  const root = path.parse(path.resolve(file)).root
  const rest = partsOf(path.resolve(file).slice(root.length))
  let found: Stats | undefined
  let at = root
  try {
    // The owner of the root folder can change everything: in a user namespace, that is how root's number looks.
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
          fix: `Close it with chmod go-w ${shellWord(at)}${whereFixed(at)}`,
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
