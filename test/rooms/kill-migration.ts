// npx tsx test/rooms/kill-migration.ts [<deliveries> [<kills>]]: kills a start that migrates a large profile at that many places, spread over the
// time that it takes, and compares every row with what was there before. By default a million deliveries and twenty places: about half an
// hour, and 4 GB in TMPDIR. CI has the same with a small profile, in migrations.test.ts.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadSqlite } from '../../src/store/sqlite-library.js'
import { openDatabase } from '../../src/store/open.js'

const [deliveries = 1_000_000, kills = 20] = process.argv.slice(2).map(Number)
/** Each table with its key. */
const TABLES = {
  delivery: ['n'],
  body: ['n'],
  forward: ['n', 'target'],
  attempt: ['n', 'seq'],
  kv: ['key'],
} as const

const root = mkdtempSync(path.join(tmpdir(), 'kill-migration-'))
const [base, home] = [path.join(root, 'base'), path.join(root, 'home')]
const profile = path.join(home, 'default')
try {
  await make()
  report({ deliveries, bytes: statSync(path.join(base, 'relay.db')).size })
  const whole = await migrated()
  report({ ...whole, ...verify() })
  for (let i = 1; i <= kills; i++) report(await killed((whole.ms * i) / (kills + 1)))
  report({ after: 'the last kill', ...(await finished()), ...verify() })
} finally {
  rmSync(root, { recursive: true, force: true })
}

function report(result: object): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}

/** A profile of this version, in which every tenth delivery waits, and every hundredth has failed. */
async function make(): Promise<void> {
  await (await openDatabase({ kind: 'file', folder: base }))[Symbol.asyncDispose]()
  using opened = new (loadSqlite().DatabaseSync)(path.join(base, 'relay.db'))
  const n = `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${deliveries}) `
  const now = Date.now()
  opened.exec('BEGIN')
  for (const insert of [
    `INSERT INTO delivery (n, key, received_at, source, scheme, verified, event, repo, delivery_id, hook_id, headers, size)
      ${n} SELECT n, 'github ' || n, ${now}, 'github', 'github', 'current', 'push', 'octo/demo', 'delivery-' || n, '42', '[]', 300 FROM c`,
    `INSERT INTO body (n, bytes) ${n} SELECT n, randomblob(300) FROM c`,
    `INSERT INTO forward (n, target, position, status, tries, since) ${n} SELECT n, '*=http://localhost:1', 0,
      CASE WHEN n % 10 = 0 THEN 'waiting' WHEN n % 100 = 1 THEN 'failed' ELSE 'succeeded' END, 0, ${now} FROM c`,
    `INSERT INTO attempt (n, seq, target, at, outcome, status, ms, answer, count) ${n} SELECT n, 1, '*=http://localhost:1', ${now},
      'succeeded', 200, 5, x'6f6b', 1 FROM c WHERE n % 10 <> 0`,
    `INSERT INTO kv (key, value) VALUES ('token:ada', '{"secret":"canary"}')`,
  ])
    opened.exec(insert)
  opened.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
}

function start(): ChildProcess {
  const argv = [
    '--import',
    'tsx',
    'test/rooms/next-relay.ts',
    'serve',
    '--port',
    '0',
    '--json',
    '--keep-max',
    '1TiB',
  ]
  const env = {
    PATH: process.env['PATH'],
    HOME: root,
    RELAY_HOME: home,
    RELAY_WEBHOOK_SECRET: 'secret',
    RELAY_PROVIDER: 'gitea',
    RELAY_PROVIDER_URL: 'http://127.0.0.1:9',
  }
  return spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'inherit'] })
}

function restore(): void {
  rmSync(home, { recursive: true, force: true })
  cpSync(base, profile, { recursive: true })
}

async function migrated(): Promise<{ readonly ms: number }> {
  restore()
  return finished()
}

/** Starts, waits until it listens, and stops it. */
async function finished(): Promise<{ readonly ms: number }> {
  const began = performance.now()
  const program = start()
  if (program.stdout) await once(program.stdout, 'data')
  const ms = Math.round(performance.now() - began)
  program.kill('SIGTERM')
  await once(program, 'exit')
  return { ms }
}

async function killed(ms: number): Promise<object> {
  restore()
  const program = start()
  program.stdout?.resume()
  const ended = once(program, 'exit')
  await sleep(ms)
  program.kill('SIGKILL')
  const [, signal] = await ended
  const files = readdirSync(profile).filter((name) => name.startsWith('relay.db'))
  return { killedAfter: Math.round(ms), signal, files, ...verify() }
}

/** How many rows of each table are not what they were, and the version of the data. */
function verify(): object {
  using opened = new (loadSqlite().DatabaseSync)(path.join(profile, 'relay.db'))
  opened.exec(`ATTACH '${path.join(base, 'relay.db')}' AS base`)
  const count = (query: string): number => Number(opened.prepare(query).get()?.['count'])
  const lost = Object.entries(TABLES).map(([table, key]) => {
    const columns = opened.prepare(`SELECT name FROM pragma_table_info('${table}', 'base')`).all()
    const same = columns.map(({ name }) => `now.${name} IS was.${name}`).join(' AND ')
    const on = key.map((name) => `now.${name} = was.${name}`).join(' AND ')
    const kept = count(
      `SELECT count(*) AS count FROM base.${table} AS was JOIN main.${table} AS now ON ${on} WHERE ${same}`,
    )
    return [table, count(`SELECT count(*) AS count FROM base.${table}`) - kept]
  })
  const { version } = opened.prepare('SELECT version FROM main.relay_schema').get() ?? {}
  return { version, lost: Object.fromEntries(lost) }
}
