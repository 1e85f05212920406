// How fast deliveries are taken, on SQLite and on PostgreSQL.
import { chmodSync } from 'node:fs'
import { makeCluster, PASSWORD, postgresProgram, startServer, USER } from '../test/kit/postgres-server.js'
import { load } from './load.js'
import {
  type Benchmark,
  type Env,
  type Figures,
  measure,
  notMeasured,
  type Pair,
  pair,
  Relay,
  type Row,
  type Rounds,
  run,
  type Scope,
} from './rig.js'

const ROUNDS = 7
const SECONDS = 2

export const ingest: Benchmark = {
  about: `
GitHub's example of a push, 7,678 bytes, signed, each with an id of its own, over 32 connections and over one.
It is verified, parsed, and answered once it is on disk. PostgreSQL runs on this machine with the settings of the
tests. ${ROUNDS} rounds of ${SECONDS} s.`,

  async run({ rounds, size }, scope) {
    const seconds = size === 'short' ? 0.2 : SECONDS
    const sqlite = await pair((build) => new Relay(scope, build).serve())
    const rows = await takes('SQLite', { rounds: rounds(ROUNDS), seconds }, sqlite)
    const createdb = postgresProgram('createdb')
    if (createdb === undefined) return [...rows, notMeasured('PostgreSQL', 'it is not installed')]
    const database = await startPostgres(scope, createdb)
    const postgres = await pair(async (build) => new Relay(scope, build, await database()).serve())
    return [...rows, ...(await takes('PostgreSQL', { rounds: rounds(ROUNDS), seconds }, postgres))]
  },
}

interface Taking {
  readonly rounds: Rounds
  /** Of each round. */
  readonly seconds: number
}

async function takes(
  store: string,
  { rounds, seconds }: Taking,
  relays: Pair<Relay>,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const connections of [32, 1]) {
    const what = `${store}, ${connections === 1 ? 'one by one' : `${connections} at once`}`
    const figures = async ({ url }: Relay): Promise<Figures> => {
      const { perSecond, p50, p99 } = await load(url, { connections, seconds })
      return { [`${what}, deliveries/s`]: perSecond, [`${what}, p50 ms`]: p50, [`${what}, p99 ms`]: p99 }
    }
    rows.push(...(await measure(rounds, relays, figures)))
  }
  return rows
}

/** Starts a server. The result makes a database for one relay: another version may have other tables. */
async function startPostgres(scope: Scope, createdb: string): Promise<() => Promise<Env>> {
  const folder = scope.folder()
  // Its programs run as another user.
  chmodSync(folder, 0o711)
  const { port } = scope.use(await startServer(await makeCluster(folder)))
  let count = 0
  return async () => {
    const name = `relay${count++}`
    const login = { PGPASSWORD: PASSWORD }
    await run(createdb, ['-h', '127.0.0.1', '-p', `${port}`, '-U', USER, name], { env: login })
    const key = Buffer.alloc(32, 7).toString('base64')
    const store = `postgres://${USER}@127.0.0.1:${port}/${name}`
    return { RELAY_STORE: store, RELAY_TOKEN_KEY: key, ...login }
  }
}
