import { execFile } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { Daemon } from './daemon.js'
import { closedPort } from './ports.js'

/** Where Debian has each version's programs, which are not in PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** Debian's user without rights: the server refuses to run as root. */
export const UNPRIVILEGED = 65_534
export const USER = 'relay'
export const PASSWORD = 'a password of the tests'

/** Whom the server's programs run as. */
export const OWNER = process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}

/** A server on 127.0.0.1, without the help of a database's client. */
export type Server = Awaited<ReturnType<typeof startServer>>

/** The path of one of the newest installed server's programs; nothing where there is none. */
export function postgresProgram(name: string): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number).filter(Number.isInteger) : []
  const files = versions.toSorted((one, other) => other - one).map((each) => `${DEBIAN}/${each}/bin/${name}`)
  return files.find((file) => existsSync(file))
}

/** A new cluster's folder, within one that the caller removes. Small files of its log make it quick to copy. */
export async function makeCluster(within: string): Promise<string> {
  const folder = ownedFolder(within)
  const password = path.join(folder, 'password')
  writeFileSync(password, PASSWORD)
  chmodSync(password, 0o644)
  const data = path.join(folder, 'data')
  const options = ['-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C.UTF-8', '--wal-segsize=1', '--no-sync']
  const own = ['-D', data, '-U', USER, `--pwfile=${password}`]
  await runAsOwner(postgresProgram('initdb') ?? '', [...own, ...options])
  return data
}

/** Starts a server on a copy of a cluster, next to it; `settings` are added to its configuration. `wrapper`: a command that starts it, as root. */
export async function startServer(
  cluster: string,
  settings: Readonly<Record<string, string>> = {},
  wrapper: readonly string[] = [],
) {
  const folder = ownedFolder(path.dirname(path.dirname(cluster)))
  const data = path.join(folder, 'data')
  await runAsOwner('cp', ['-R', cluster, data])
  await runAsOwner('chmod', ['700', data])
  const port = await closedPort()
  const options = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '300',
    // A checkpoint flushes some hundred files for each database that was made since the one before.
    checkpoint_timeout: '1h',
    max_wal_size: '1GB',
    ...settings,
  }
  const args = ['-D', data, ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const launch = async (): Promise<Daemon> => {
    const postgres = [postgresProgram('postgres') ?? '', ...args]
    const asOwner = ['setpriv', `--reuid=${UNPRIVILEGED}`, `--regid=${UNPRIVILEGED}`, '--clear-groups']
    const [file = '', ...rest] = wrapper.length > 0 ? [...wrapper, ...asOwner, ...postgres] : postgres
    const owner = wrapper.length > 0 ? {} : OWNER
    const daemon = new Daemon(file, rest, { ...owner, cwd: folder, end: 'SIGQUIT' })
    await daemon.says(/ready to accept connections/)
    return daemon
  }
  let daemon = await launch()
  return {
    port,
    /** The process whose children serve the connections. */
    get pid() {
      return daemon.pid
    },
    /** Ends it: by default as its administrator does, with `SIGQUIT` as a crash does. */
    stop: (signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT') => daemon.stop(signal),
    /** Starts it again. */
    async start(): Promise<void> {
      daemon = await launch()
    },
    [Symbol.asyncDispose]: () => daemon.stop('SIGQUIT'),
  }
}

/** An empty folder of the user that the server's programs run as. */
function ownedFolder(within: string): string {
  const folder = mkdtempSync(path.join(within, 'postgres-'))
  if (OWNER.uid !== undefined) chownSync(folder, OWNER.uid, OWNER.uid)
  return folder
}

async function runAsOwner(file: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(file, [...args], { ...OWNER, cwd: '/' })
}
