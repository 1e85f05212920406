import { spawnSync } from 'node:child_process'
import { statfsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { emptyFolder } from '../../helpers/context.js'

export const DISKS = ['tmpfs', 'ext4'] as const

/** A small file system that only a program and what it starts can see: it is gone when they have ended, however they end. */
export interface Disk {
  /** Where the program finds it. */
  readonly folder: string
  /** The command that starts the program. */
  readonly wrapper: readonly string[]
  /** The same folder for this process, while the program runs. */
  readonly seenFrom: (pid: number | undefined) => string
}

/** A file system of so many MiB. An ext4 keeps nothing back for root and has no journal of its own: both are room for data. */
export function smallDisk(kind: (typeof DISKS)[number], size: number): Disk {
  const base = emptyFolder()
  const folder = path.join(base, 'disk')
  const image = path.join(base, 'image')
  const make = `set -e; mkdir ${folder}`
  const mount =
    kind === 'tmpfs'
      ? `mount -t tmpfs -o size=${size}m none ${folder}`
      : `truncate -s ${size}M ${image}; mkfs.ext4 -q -m 0 ${image}; mount -o loop ${image} ${folder}`
  return {
    folder,
    wrapper: ['unshare', '--mount', 'sh', '-c', `${make}; ${mount}; exec "$@"`, 'sh'],
    seenFrom: (pid) => `/proc/${pid}/root${folder}`,
  }
}

/** Takes all but so many free bytes of a file system, as another program does. */
export function takeSpace(folder: string, left: number): string {
  const file = path.join(folder, 'ballast')
  const { bavail, bsize } = statfsSync(folder)
  spawnSync('fallocate', ['-l', String(bavail * bsize - left), file])
  return file
}

/** Takes the last bytes too. */
export function fillUp(folder: string): void {
  for (let i = 0; ; i++) {
    try {
      writeFileSync(path.join(folder, `rest ${i}`), 'x'.repeat(4096))
    } catch {
      return
    }
  }
}
