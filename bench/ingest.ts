// How fast deliveries are taken, on SQLite and on PostgreSQL.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { load } from './load.js'
import {
  answering,
  type Benchmark,
  end,
  type Env,
  type Figures,
  freePort,
  measure,
  notMeasured,
  type Pair,
  pair,
  Relay,
  type Row,
  run,
  type Scope,
  SECRET,
  until,
} from './rig.js'

const ROUNDS = 7
const SECONDS = 2
/** Where Debian has each version's programs, which are not in PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** Debian's user without rights: PostgreSQL refuses to run as root. */
const NOBODY = 65_534

export const ingest: Benchmark = {
  about: `
GitHub's example of a push, 7,678 bytes, signed, each with an id of its own, over 32 connections and over one.
It is verified, parsed, and answered once it is on disk. For comparison: a server that appends to a file, with
one flush for all that came meanwhile, which is what the disk allows. PostgreSQL runs on this machine with its
default settings. ${ROUNDS} rounds of ${SECONDS} s.`,

  async run({ rounds }, scope) {
    const sqlite = await pair((build) => new Relay(scope, build).serve())
    const rows = await takes('SQLite', rounds(ROUNDS), sqlite, await appendFile(scope))
    const programs = postgresPrograms()
    if (programs === undefined) return [...rows, notMeasured('PostgreSQL', `${DEBIAN} has no initdb`)]
    const database = await startPostgres(scope, programs)
    const postgres = await pair(async (build) => new Relay(scope, build, await database()).serve())
    return [...rows, ...(await takes('PostgreSQL', rounds(ROUNDS), postgres))]
  },
}

async function takes(
  store: string,
  rounds: number,
  relays: Pair<Relay>,
  file?: string,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const connections of [32, 1]) {
    const what = `${store}, ${connections === 1 ? 'one by one' : `${connections} at once`}`
    const figures = async (url: string): Promise<Figures> => {
      const { perSecond, p50, p99 } = await load(url, { connections, seconds: SECONDS })
      return { [`${what}, deliveries/s`]: perSecond, [`${what}, p50 ms`]: p50, [`${what}, p99 ms`]: p99 }
    }
    const beside = file === undefined ? undefined : { name: 'file', measure: () => figures(file) }
    rows.push(...(await measure(rounds, relays, ({ url }) => figures(url), beside)))
  }
  return rows
}

async function appendFile(scope: Scope): Promise<string> {
  const [port, file] = [await freePort(), path.join(scope.folder(), 'deliveries')]
  const server = spawn(process.execPath, ['--import', 'tsx', 'bench/append-file.ts', `${port}`, file], {
    env: { RELAY_WEBHOOK_SECRET: SECRET },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  scope.defer(() => end(server))
  const url = `http://127.0.0.1:${port}`
  await answering(url, server)
  return url
}

/** The folder of the newest version's programs. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number) : []
  const folders = versions.toSorted((one, other) => other - one).map((version) => `${DEBIAN}/${version}/bin`)
  return folders.find((folder) => existsSync(path.join(folder, 'initdb')))
}

/** Starts a server. The result makes a database for one relay: another version may have other tables. */
async function startPostgres(scope: Scope, programs: string): Promise<() => Promise<Env>> {
  const [folder, port] = [scope.folder(), await freePort()]
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(folder, NOBODY, NOBODY)
  const as = { cwd: folder, ...(isRoot && { uid: NOBODY, gid: NOBODY }) }
  const program = (name: string) => path.join(programs, name)
  const data = ['-D', path.join(folder, 'data')]
  const how = ['--no-sync', '-U', 'relay', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8']
  execFileSync(program('initdb'), [...data, ...how], { ...as, stdio: 'ignore' })
  const options = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=']
  const args = [...data, ...options.flatMap((option) => ['-c', option])]
  const server = spawn(program('postgres'), args, { ...as, stdio: 'ignore' })
  scope.defer(() => end(server, 'SIGQUIT'))
  const address = ['-h', '127.0.0.1', '-p', `${port}`]
  await until('PostgreSQL is ready', () => spawnSync(program('pg_isready'), address).status === 0)
  let count = 0
  return async () => {
    const name = `relay${count++}`
    await run(program('createdb'), [...address, '-U', 'relay', name])
    const key = Buffer.alloc(32, 7).toString('base64')
    const store = `postgres://relay@127.0.0.1:${port}/${name}`
    return { RELAY_STORE: store, RELAY_TOKEN_KEY: key, PGPASSWORD: 'any' }
  }
}
