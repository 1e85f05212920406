import { DatabaseSync } from '@photostructure/sqlite'
import { spawnSync } from 'node:child_process'
import { statfsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Daemon } from './daemon.js'
import { emptyFolder } from './folder.js'

/** The command that starts a program none of whose files may grow beyond so many bytes: writing more fails as on a full disk. */
export function limited(bytes: number): readonly string[] {
  // In the blocks of 512 bytes that POSIX counts. The soft limit can be raised again.
  return ['sh', '-c', `ulimit -S -f ${bytes / 512}; exec "$@"`, 'sh']
}

/** Ends that limit of a running process. Linux only. */
export function unlimit(pid: number): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), '--fsize=unlimited'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`prlimit: ${stderr}`)
}

/**
 * A file system in memory of so many MiB that only a program and what it starts can see: it is gone when they have ended, however
 * they end. Needs `mount`.
 */
export function smallDisk(size: number) {
  const folder = path.join(emptyFolder(), 'disk')
  const mount = `set -e; mkdir '${folder}'; mount -t tmpfs -o size=${size}m none '${folder}'`
  return {
    /** Where the program finds it. */
    folder,
    /** The command that starts the program. */
    wrapper: ['unshare', '--mount', 'sh', '-c', `${mount}; exec "$@"`, 'sh'],
    /** The same folder for this process, while the program runs. */
    seenFrom: (pid: number): string => `/proc/${pid}/root${folder}`,
  }
}

/** The same for programs that run one after another: it is gone when it is disposed of. */
export async function keptDisk(size: number) {
  const { folder, wrapper, seenFrom } = smallDisk(size)
  const mounted = [...wrapper, 'sh', '-c', 'echo mounted >&2; exec sleep infinity']
  const daemon = new Daemon('env', mounted)
  await daemon.says(/^mounted$/)
  return {
    folder,
    wrapper: ['sh', '-c', `exec nsenter --mount=/proc/${daemon.pid}/ns/mnt --wd="$PWD" -- "$@"`, 'sh'],
    /** The same folder for this process. */
    seen: seenFrom(daemon.pid),
    [Symbol.asyncDispose]: () => daemon.stop(),
  }
}

/** The command that starts a program for which a folder is on a file system that is read-only. Needs `mount`. */
export function readOnly(folder: string): readonly string[] {
  const mount = `set -e; mount --bind '${folder}' '${folder}'; mount -o remount,bind,ro '${folder}'`
  return ['unshare', '--mount', 'sh', '-c', `${mount}; exec "$@"`, 'sh']
}

/** Fills a file system to the last byte, as another program does. To free it, remove the file whose path is returned. */
export function fillUp(folder: string): string {
  const ballast = path.join(folder, 'ballast')
  const { bavail, bsize } = statfsSync(folder)
  // A program that writes meanwhile leaves less room.
  for (let size = bavail * bsize; size > 0; size -= 262_144)
    if (spawnSync('fallocate', ['-l', String(size), ballast]).status === 0) break
  for (let i = 0; ; i++) {
    try {
      writeFileSync(path.join(folder, `rest ${i}`), 'x'.repeat(4096))
    } catch {
      return ballast
    }
  }
}

/** Holds the lock on writing of the database in `folder`: until it is released no other connection can commit. Throws while another has it. */
export function hold(folder: string): { release(): void } & AsyncDisposable {
  const database = new DatabaseSync(path.join(folder, 'relay.db'))
  try {
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    throw error
  }
  let open = true
  const release = (): void => {
    if (open) database.close()
    open = false
  }
  return {
    release,
    async [Symbol.asyncDispose]() {
      release()
    },
  }
}

/** The command that starts a program in which a system call has another effect: as strace's `inject`; on these files, or on all. */
export function injected(call: string, effect: string, ...files: readonly string[]): readonly string[] {
  const about = files.flatMap((file) => ['-P', file])
  const log = path.join(emptyFolder(), 'trace')
  return ['strace', '-f', '-qq', '-o', log, ...about, '-e', `trace=${call}`, '-e', `inject=${call}:${effect}`]
}
