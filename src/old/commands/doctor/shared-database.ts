import { basename } from 'node:path'
import { SharedStore } from '../../../base/shared-store.js'
import type { Database } from '../../../store/open.js'
import { CONNECTIONS, readHealth, type ServerHealth } from '../../../store/postgres-health.js'
import { createCipher } from '../../../store/cipher.js'
import { countKeyUse } from '../../../store/cipher.js'
import { VERSION } from '../../../store/schema.js'
import { storeOf } from '../../settings/complete.js'
import { setClock } from './code-host.js'
import type { CheckContext } from './context.js'
import { roundTrip, TEST_PREFIX } from './database.js'
import { type CheckResult, type Checks, fail, ok, skip } from './result.js'

/** Relays write their own time into what they share. With a larger difference its order and expiry surprise. */
const MAX_CLOCK_DIFFERENCE_MS = 5000

/** What is checked of a shared database; all but the first are left out when it cannot be opened. */
export function sharedChecks(
  context: CheckContext,
  database: Database | undefined,
  problem: string | undefined,
): Checks {
  if (!database)
    return {
      database: () => fail(problem ?? 'it cannot be opened', 'relay config, which shows the address'),
    }
  let asked: Promise<ServerHealth> | undefined
  const health = (): Promise<ServerHealth> => (asked ??= readHealth(database.sql))
  let tried: Promise<CheckResult> | undefined
  const server = (): Promise<CheckResult> =>
    (tried ??= health().then((known) => checkServer(database, known)))
  return {
    database: server,
    async 'token key'() {
      // It counts records, and the test's own would be one of them.
      await server().catch(() => {})
      return checkTokenKey(context, database)
    },
    'database clock': async () => checkServerClock(await health()),
    durability: async () => checkDurability(await health()),
    connections: async () => checkConnections(await health()),
    rights: async () => checkRights(context, await health()),
  }
}

/** Whether it takes and returns a record. */
async function checkServer(
  { store }: Database,
  { version, isEncrypted }: ServerHealth,
): Promise<CheckResult> {
  await roundTrip(store, TEST_PREFIX)
  const [number = ''] = version.split(' ')
  const connection = isEncrypted ? 'encrypted by TLS' : 'not encrypted'
  return ok(
    `can write and read; PostgreSQL ${number}; schema version ${VERSION}; the connection is ${connection}`,
  )
}

/** Whether every record can be read with the current key, so that the previous one is not needed. */
async function checkTokenKey({ options, folder }: CheckContext, { sql }: Database): Promise<CheckResult> {
  const kind = storeOf(options)
  if (!(kind instanceof SharedStore) || !kind.secrets.keys) return skip('no key is set')
  const cipher = createCipher(kind.secrets.keys, basename(folder))
  const { records, others } = await countKeyUse(sql, cipher)
  const isRotating = cipher.previousPrefix !== undefined
  if (others === 0)
    return ok(
      `fits; encrypts all ${records} records${isRotating ? '. Remove RELAY_TOKEN_KEY_PREVIOUS once every machine has this key' : ''}`,
    )
  const text = `${others} of ${records} records are not under RELAY_TOKEN_KEY`
  if (isRotating) return fail(text, 'wait a minute: a running relay serve with both keys encrypts them again')
  return fail(text, 'set the earlier key as RELAY_TOKEN_KEY_PREVIOUS, here and for relay serve')
}

function checkServerClock({ ahead }: ServerHealth): CheckResult {
  const seconds = Math.round(Math.abs(ahead) / 1000)
  if (Math.abs(ahead) <= MAX_CLOCK_DIFFERENCE_MS)
    return ok(`within ${Math.max(1, seconds)} s of the database's`)
  const text = `this machine is ${seconds} s ${ahead > 0 ? 'behind' : 'ahead of'} the database`
  return fail(text, setClock())
}

/** Whether what is acknowledged survives a crash of the server (PostgreSQL 15, 20.5). */
function checkDurability({ unsafe }: ServerHealth): CheckResult {
  if (unsafe.length === 0) return ok('what is acknowledged survives a crash of the server')
  const isHarmless = unsafe.every((name) => name === 'synchronous_commit')
  const risk = isHarmless ? 'loses deliveries that were acknowledged' : 'can damage the database'
  return fail(
    `${unsafe.join(', ')} off: a crash of the server ${risk}`,
    'turn it on in postgresql.conf and for the user of the database, then SELECT pg_reload_conf()',
  )
}

function checkConnections({ connectionsLeft }: ServerHealth): CheckResult {
  const left = Math.max(0, connectionsLeft)
  if (left >= CONNECTIONS) return ok(`${left} left; a relay uses ${CONNECTIONS}`)
  return fail(`${left} left, but a relay uses ${CONNECTIONS}`, 'raise max_connections, or run fewer relays')
}

function checkRights({ options }: CheckContext, { missingRights, isOwner }: ServerHealth): CheckResult {
  const [right] = missingRights
  if (right !== undefined)
    return fail(
      `the user lacks ${right}${missingRights.length > 1 ? `, and ${missingRights.length - 1} more` : ''}`,
      `as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "relay_${options.profile}" TO …`,
    )
  return ok(
    isOwner ? 'owns the schema' : 'can read and write; only the owner can update relay to a new schema',
  )
}
