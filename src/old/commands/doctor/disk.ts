import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import path from 'node:path'
import { isSharedAddress } from '../../../base/shared-store.js'
import { databaseFile } from '../../../store/open.js'
import { RESERVE } from '../../../store/sqlite.js'
import { tilde } from '../../output/display-path.js'
import type { CheckContext } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Below this multiple of the reserve, doctor warns that space gets low. */
const LOW = 10

/** File systems whose locks and flushes SQLite cannot rely on (`man 2 statfs`). */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x01021997: '9P',
}
/** It may be a network file system, or a local one. */
const FUSE = 0x65735546

/** What `statfs` says, and tests set. */
export interface FileSystem {
  readonly type: number
  /** Free bytes for this user. */
  readonly free: number
}

/** Whether the profile's folder can be written, has room, and lies on a disk of this machine. */
export function checkDisk(
  { options, folder }: Pick<CheckContext, 'options' | 'folder'>,
  { type, free }: FileSystem = fileSystemOf(folder),
): CheckResult {
  if (options.store === 'memory') return skip('memory: nothing is stored')
  if (isSharedAddress(options.store)) return skip('the data is in a shared database')
  const name = NETWORK[type]
  if (name)
    return fail(
      `${tilde(folder)} is on a network file system (${name}), which can damage a database`,
      'set RELAY_HOME to a folder on a disk of this machine',
    )
  const locked = [folder, databaseFile(folder)].find((file) => existsSync(file) && !isWritable(file))
  if (locked !== undefined) return fail(`${tilde(locked)} cannot be written`, `chmod u+w ${tilde(locked)}`)
  const space = `${mebibytes(free)} free`
  if (free < RESERVE)
    return fail(
      `${space}: deliveries are refused below ${mebibytes(RESERVE)}`,
      `free some space: df -h ${tilde(folder)}`,
    )
  const earlier = path.join(folder, 'relay.mdb')
  const hints = [
    ...(free < LOW * RESERVE ? [`deliveries are refused below ${mebibytes(RESERVE)}`] : []),
    ...(existsSync(earlier)
      ? [`${tilde(earlier)} of an earlier development version is not read: delete it`]
      : []),
    ...(type === FUSE ? ['the file system is FUSE, which must not be a network one'] : []),
  ]
  return ok([space, ...hints].join('; '))
}

function fileSystemOf(folder: string): FileSystem {
  if (!existsSync(folder)) return fileSystemOf(path.dirname(folder))
  const { type, bavail, bsize } = statfsSync(folder)
  return { type, free: bavail * bsize }
}

function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1_048_576).toLocaleString('en-US')} MiB`
