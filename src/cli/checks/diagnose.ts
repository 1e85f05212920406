import { isUnsigned } from '../../senders/source-text.js'
import { shownSource } from '../../base/source-names.js'
import { anywhere } from '../../base/command-line.js'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { errorReason, RelayError } from '../../base/errors.js'
import { folderObstacle } from '../../base/own-files.js'
import { SOURCE_SECRET } from '../../base/secret-variables.js'
import { awaitWithin } from '../../base/wait.js'
import { DEFAULTS } from '../../base/settings.js'
import { isSharedAddress, SharedStore } from '../../base/shared-store.js'
import { chmodAdvice } from '../../base/trust.js'
import { secretPrint, type TunnelStatus } from '../../instance/protocol.js'
import { explainUnreachable, findInstances } from '../../instance/running.js'
import { countKeyUse, createCipher } from '../../store/cipher.js'
import { type Database, databaseFile } from '../../store/open.js'
import { readHealth } from '../../store/postgres-health.js'
import { currentVersion, NotMigrated } from '../../store/schema.js'
import { freeBytes, RESERVE } from '../../store/sqlite.js'
import type { Flags, Shell } from '../command.js'
import type { Output } from '../output/output.js'
import { dim, green, red, t, tilde } from '../output/text.js'
import { localTime } from '../output/time.js'
import { type Advised, commandFor, startCommand } from '../advice.js'
import { isServed } from '../../instance/profile.js'
import { openProfile, type Profile } from '../profile.js'
import { storeOf } from '../settings/derived.js'
import { joinStored } from '../stored-setup.js'
import { webhookSecret } from '../webhook-secret.js'
import { meantSetting } from '../settings/read.js'
import { SETTING_NAMES, variablesOf } from '../settings/table.js'
import { lacksSecret, readSources, type SetSource } from '../sources.js'
import {
  type Check,
  type CheckResult,
  type Examined,
  fail,
  LIMIT_MS,
  SET_CLOCK,
  settle,
  skip,
} from './check.js'

/** Result of a check, with its name. */
export type NamedResult = CheckResult & { readonly check: string }

/** True if the check found a problem. */
export function isFailure({ state }: CheckResult): boolean {
  return state === 'fail'
}

const MARKS = { ok: green('ok'), fail: red('x '), skip: dim('- ') } as const

/** Prints the results of checks for a person. */
export function printChecks(checks: readonly NamedResult[], out: Output): void {
  const width = Math.max(...checks.map(({ check }) => check.length))
  for (const { check, state, text, fix } of checks) {
    out.result(t`${MARKS[state]}  ${check.padEnd(width)}  ${text}`, width + 6)
    if (fix !== undefined) out.result(`${' '.repeat(width + 6)}fix: ${fix}`, width + 11)
  }
}

/**
 * Time to wait for a process that holds the database, since the whole command should finish within 5 s. Milliseconds.
 */
const PATIENCE_MS = 1500

/**
 * Checks everything that a profile needs, in the order in which it is shown; each within a time limit. Changes nothing, except
 * that it writes a record to the database and deletes it.
 * @throws RelayError `usage`, `unavailable` as {@link openProfile}: there is no one profile to diagnose; the signal's reason
 */
export async function diagnose(shell: Shell, flags: Flags): Promise<NamedResult[]> {
  let opened: Profile
  try {
    opened = await openProfile(shell, flags, { problems: 'report', mayBeHub: true })
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind !== 'settings') throw error
    return [{ check: 'settings', state: 'fail', text: error.message, fix: anywhere('config --help') }]
  }
  await using profile = opened
  // First, since opening the database corrects the folder's permissions.
  const machine = await bounded(profile, 'machine', async () => checkMachine(profile))
  let data: Database | undefined
  let problem: Examined['problem']
  try {
    data = await profile.data({ patience: PATIENCE_MS })
  } catch (error) {
    const text = error instanceof RelayError ? error.message : 'The database cannot be opened'
    problem = { text, fix: error instanceof NotMigrated ? startCommand(profile) : undefined }
  }
  // Data that cannot be read is a result of its own check.
  const joined = await (data && joinStored(profile.parts, data.secrets))?.catch(() => undefined)
  const subject = { shell, profile: { ...profile, ...joined }, data, problem }
  const results = await Promise.all(
    Object.entries(profile.saved?.hub ? HUB_CHECKS : await concurrentChecks()).map(([name, check]) =>
      bounded(profile, name, () => check(subject)),
    ),
  )
  shell.signal.throwIfAborted()
  // Last and alone: no signal is heard while SQLite reads a large file.
  const database = await bounded(profile, 'database', () => checkDatabase(subject))
  // Most people receive from their code host alone.
  const shown = results.filter(({ check, state }) => check !== 'sources' || state !== 'skip')
  return [machine, ...shown].toSpliced(3, 0, database)
}

/** Checks of a hub, which has no code host and no sources. */
const HUB_CHECKS: Readonly<Record<string, Check>> = { settings: checkSettings, relay: checkHub }

async function checkHub({ profile }: Examined): Promise<string> {
  if (await isServed(profile.folder)) return 'the hub runs'
  throw skip(`the hub does not run; start it with ${startCommand(profile)}`)
}

/** Checks that run at the same time. Those of the code host are loaded here, with zod and the code hosts. */
async function concurrentChecks(): Promise<Readonly<Record<string, Check>>> {
  const { checkCodeHost, checkSignIn, checkHook } = await import('./code-host.js')
  return {
    settings: checkSettings,
    relay: checkRelay,
    'code host': checkCodeHost,
    'sign-in': checkSignIn,
    hook: checkHook,
    tunnel: checkTunnel,
    sources: checkSources,
  }
}

/** Runs a check within a limit that is a little longer than that of a request, whose error is more precise. */
async function bounded(about: Advised, check: string, run: () => Promise<string>): Promise<NamedResult> {
  const result = await settle(() => awaitWithin(LIMIT_MS + 250, run()))
  const fix = `run ${commandFor(about, 'config')}, which shows the settings`
  return { check, ...(result.state === 'fail' && { fix }), ...result }
}

// Node and the disk

/** File systems whose locks and flushes are not reliable for SQLite (`man 2 statfs`). */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x01021997: '9P',
  0x00c36400: 'Ceph',
  0x5346414f: 'AFS',
  0x0bd00bd0: 'Lustre',
  0x47504653: 'GPFS',
  0x786f4256: 'vboxsf',
  0x53464846: 'drvfs',
}

/** File systems that are known to work, and other common ones, with notes. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4, a local disk',
  0x58465342: 'XFS, a local disk',
  0x9123683e: 'Btrfs, a local disk',
  0xf2f52010: 'F2FS, a local disk',
  0x2fc12fc1: 'ZFS, a local disk',
  0xca451a4e: 'bcachefs, a local disk',
  0x01021994: 'tmpfs, which is empty after a restart',
  0x794c7630: 'overlayfs, the layer of a container, which goes with it: mount a volume there',
  0x65735546: 'FUSE, which works only where it has POSIX locks and shared memory',
  0x4d44: 'FAT, which keeps no permissions',
  0x2011bab0: 'exFAT, which keeps no permissions',
  0x7366746e: 'NTFS',
  0x5346544e: 'NTFS',
}

/** Describes a file system by its Linux type. Windows and macOS use other numbers. */
function describeFileSystem(type: number, platform = process.platform): string {
  const known = FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`
  return platform === 'linux' ? ` (${known})` : ''
}

/**
 * Checks that Node is new enough, and that the profile's folder is private, has room, and is on a disk of this machine.
 */
export function checkMachine({ values, folder }: Profile, machine = machineOf(folder)): string {
  const { node, type, free } = machine
  const [major = 0, minor = 0] = node.split('.').map(Number)
  // Same version as in package.json.
  if (major < 20 || (major === 20 && minor < 18))
    throw fail(`Node ${node} is older than 20.18`, 'install Node 20.18 or later: https://nodejs.org')
  if (values.store === 'memory') return `Node ${node}; nothing is stored`
  if (isSharedAddress(values.store)) return `Node ${node}; the data is in a shared database`
  const place = tilde(folder)
  const network = NETWORK[type]
  if (network)
    throw fail(
      `${place} is on a network file system (${network}), which can damage a database`,
      'set RELAY_HOME to a folder on a disk of this machine',
    )
  const found = statSync(folder, { throwIfNoEntry: false })
  // Windows has other permissions, and no such owner.
  const owner = process.getuid?.()
  if (found && owner !== undefined && found.uid !== owner)
    throw fail(`${place} belongs to another user`, `sudo chown -R "$(id -un)" ${place}`)
  if (found && owner !== undefined && (found.mode & 0o077) !== 0)
    throw fail(`other users can read or write ${place}`, `chmod 700 ${place}${chmodAdvice(folder)}`)
  const room = `${mebibytes(free)} free`
  if (free < RESERVE)
    throw fail(
      `${room}: deliveries are refused below ${mebibytes(RESERVE)}`,
      `free some space: df -h ${place}`,
    )
  const reason = found ? undefined : folderObstacle(folder)
  if (reason !== undefined)
    throw fail(`${place} cannot be made: ${reason}`, 'set RELAY_HOME to a folder that you can write to')
  const on = describeFileSystem(type)
  const privacy = found ? `only you can read ${place}${on}` : `${place}${on} does not exist yet`
  return `Node ${node}; ${privacy}; ${room}`
}

/**
 * Reads the version of Node, the type of the folder's file system (`man 2 statfs`), and its bytes that are free for
 * this user.
 */
function machineOf(folder: string): { readonly node: string; readonly type: number; readonly free: number } {
  if (!existsSync(folder) && folder !== path.dirname(folder)) return machineOf(path.dirname(folder))
  return { node: process.versions.node, type: statfsSync(folder).type, free: freeBytes(folder) }
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1_048_576).toLocaleString('en-US')} MiB`
}

// Settings

/** Shortest good secret: a shorter one can be guessed offline by anyone with one delivery. Characters. */
const MIN_SECRET = 20
/** Fewest different characters: a random text of that length has more. */
const MIN_DIFFERENT = 8

/** Known variables. Commands that relay runs for deliveries have the last one, and can run relay. */
const KNOWN: readonly string[] = [...SETTING_NAMES.flatMap(variablesOf), 'RELAY_DEBUG', 'RELAY_SOURCE']

/**
 * Checks that no variable is a misspelt setting, none contradicts the instance, and secrets are in the right place and
 * hard to guess.
 */
async function checkSettings({ shell, profile, data }: Examined): Promise<string> {
  const { own, conflict, instance, values } = profile
  for (const name of Object.keys(shell.env)) {
    const isRead = KNOWN.includes(name) || SOURCE_SECRET.test(name)
    const meant = name.startsWith('RELAY_') && !isRead && meantSetting(name, KNOWN)
    if (meant) throw fail(`${name} is not read`, `set ${meant} instead`)
  }
  if (profile.hostRefusal && own.origins.clientSecret) throw profile.hostRefusal
  if (conflict)
    throw fail(conflict.text, `${conflict.fix.toLowerCase()}, or name another profile with --profile`)
  // Another check reports unreadable data.
  const found = await webhookSecret(shell, profile, { data }).catch(() => undefined)
  if (found && instance && secretPrint(instance, found.secret) !== instance.secretPrint)
    throw fail(
      `${found.place === 'profile' ? 'the profile' : found.place} has another webhook secret than process ${instance.pid}`,
      'set RELAY_WEBHOOK_SECRET to the secret that the process was started with',
    )
  const secrets = [found?.secret.reveal(), values.webhookSecretPrevious]
  const isWeak = (text: string): boolean => text.length < MIN_SECRET || new Set(text).size < MIN_DIFFERENT
  if (secrets.some((text) => text !== undefined && isWeak(text)))
    throw fail(
      `the webhook secret is too easy to guess: fewer than ${MIN_SECRET} characters, or too few different ones`,
      'set RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32) here and at the code host',
    )
  const count = Object.keys(own.origins).length
  return count === 0 ? 'all have their defaults' : `${count} set, the others have their defaults`
}

// The relay and its port

/** Checks that the profile's instance has proved itself or, if none runs, that one could listen on its port. */
async function checkRelay({ profile, shell }: Examined): Promise<string> {
  const { instance, unreachable, values } = profile
  const { host, port, home } = values
  if (instance) {
    const { pid, url, maxBody } = instance
    const limit = maxBody.toLocaleString('en-US')
    return `process ${pid} at ${url} has proved itself; it accepts deliveries of up to ${limit} bytes`
  }
  if (unreachable) {
    const { text, fix } = explainUnreachable(unreachable)
    throw fail(text, fix)
  }
  const start = startCommand(profile)
  const tried = await tryPort(host, port)
  const freePort = port === 0 ? '' : `. Port ${port} is free`
  if (typeof tried === 'number') throw skip(`not running; start it with ${start}${freePort}`)
  const free = await tryPort(host, 0)
  if (typeof free === 'string')
    throw fail(
      `not running, and relay cannot listen on ${host} (${tried})`,
      profile.command(`serve --host ${DEFAULTS.host}`),
    )
  const { running } = await findInstances(home, { signal: shell.signal })
  const relay = running.find(({ url }) => new URL(url).port === String(port))
  const user = relay
    ? `relay itself: process ${relay.pid} serves profile ${relay.profile} there`
    : 'another program'
  const why = tried === 'EADDRINUSE' ? `is in use by ${user}` : `cannot be used (${tried})`
  throw fail(`not running, and port ${port} ${why}`, profile.command(`serve --port ${free}`))
}

/**
 * Listens for a moment without serving anything; 0 is any free port. Returns the port, or the code of the system's
 * error.
 */
async function tryPort(host: string, port: number): Promise<number | string> {
  const server = createServer((socket) => socket.destroy())
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    return errorReason(error)
  }
  const address = server.address()
  await once(server.close(), 'close')
  return typeof address === 'object' && address ? address.port : port
}

// The database

/** Lifetime of the test record, in case the check is interrupted. Milliseconds. */
const RECORD_TTL_MS = 60_000

/** Checks that the database stores and returns a record, also a secret one, and is not damaged according to SQLite. */
async function checkDatabase(subject: Examined): Promise<string> {
  const { profile, data, problem, shell } = subject
  const { values, folder } = profile
  const place = tilde(folder)
  if (isSharedAddress(values.store)) return checkServer(subject)
  if (values.store === 'memory') throw skip('memory: nothing is stored')
  const look = `ls -ld ${place}; df -h ${place}`
  if (problem !== undefined) throw fail(problem.text, problem.fix ?? look)
  if (!data) throw skip('nothing is stored yet')
  await roundTrip(data.store, 'doctor:', look)
  const hasKeychain = values.store === 'keychain'
  if (hasKeychain)
    await roundTrip(data.secrets, 'refresh:doctor-', 'unlock the keychain, or choose --store file')
  await setImmediate()
  shell.signal.throwIfAborted()
  shell.endAtSignal()
  const [found] = await data.sql.query<{ quick_check: string }>('PRAGMA quick_check(1)')
  if (found?.quick_check !== 'ok') {
    const file = tilde(databaseFile(folder))
    throw fail(
      `${file} is damaged: ${found?.quick_check}`,
      `stop relay, then sqlite3 ${file} .recover > relay.sql`,
    )
  }
  const tokens = hasKeychain ? '; the keychain is unlocked' : ''
  return `can write and read; schema version ${currentVersion()}; not damaged${tokens}`
}

/** Writes a record and reads it back. @throws {@link fail} */
async function roundTrip(store: Database['store'], prefix: string, fix: string): Promise<void> {
  const id = randomBytes(8).toString('hex')
  const write = store.put(prefix + id, id, Date.now() + RECORD_TTL_MS)
  const found = await write
    .then(() => store.consume(prefix + id))
    .catch((error: unknown) => {
      throw fail(error instanceof RelayError ? error.message : 'it cannot be read', fix)
    })
  if (found !== id) throw fail('The store did not return the record that was written', fix)
}

/**
 * Largest clock difference of a shared database, into which relays write their own time. A larger one distorts order
 * and expiry. Milliseconds.
 */
const MAX_CLOCK_DIFFERENCE_MS = 5000

/** Checks a shared database: a record, its durability, its clock, and the key of this shell. */
async function checkServer({ profile, data, problem }: Examined): Promise<string> {
  const { values, folder, name } = profile
  const look = `${profile.command('config')}, which shows the address`
  if (!data) throw fail(problem?.text ?? 'it cannot be opened', problem?.fix ?? look)
  await roundTrip(data.store, 'doctor:', look)
  const { version, isEncrypted, ahead, unsafe, missingRights } = await readHealth(data.sql)
  if (unsafe.length > 0) {
    const isHarmless = unsafe.every((name) => name === 'synchronous_commit')
    const risk = isHarmless ? 'loses deliveries that were acknowledged' : 'can damage the database'
    throw fail(
      `${unsafe.join(', ')} off: a crash of the server ${risk}`,
      'turn it on in postgresql.conf and for the user of the database, then SELECT pg_reload_conf()',
    )
  }
  if (missingRights.length > 0)
    throw fail(
      `the user lacks ${missingRights.join(', ')}`,
      `as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "relay_${name}" TO …`,
    )
  if (Math.abs(ahead) > MAX_CLOCK_DIFFERENCE_MS) {
    const seconds = Math.round(Math.abs(ahead) / 1000)
    throw fail(`this machine is ${seconds} s ${ahead > 0 ? 'behind' : 'ahead of'} the database`, SET_CLOCK)
  }
  const kind = storeOf(values)
  if (!(kind instanceof SharedStore) || !kind.secrets.keys)
    throw new Error('unreachable: a shared store has a key')
  const cipher = createCipher(kind.secrets.keys, path.basename(folder))
  const { records, others } = await countKeyUse(data.sql, cipher)
  const isRotating = cipher.previousPrefix !== undefined
  if (others > 0)
    throw fail(
      `${others} of ${records} records are not under RELAY_TOKEN_KEY`,
      isRotating
        ? 'wait a minute: a running relay serve with both keys encrypts them again'
        : 'set the earlier key as RELAY_TOKEN_KEY_PREVIOUS, here and for relay serve',
    )
  const [number = ''] = version.split(' ')
  const connection = isEncrypted ? 'encrypted by TLS' : 'not encrypted'
  const next = isRotating ? '. Remove RELAY_TOKEN_KEY_PREVIOUS once every machine has this key' : ''
  return `can write and read; PostgreSQL ${number}; schema version ${currentVersion()}; the connection is ${connection}; the key fits; encrypts all ${records} records${next}`
}

// The tunnel

/** Checks that the instance's tunnels are connected and work, as it reports them. The first that does not is named. */
async function checkTunnel({ profile }: Examined): Promise<string> {
  const { instance } = profile
  if (!instance) throw skip('no instance is running')
  const all = instance.tunnels
  const restart = profile.command('serve --tunnel')
  if (all.length === 0) throw skip(`none; restart as ${restart} to open one`)
  const results = await Promise.all(
    all.map(async ({ source, ...status }) => {
      const { text, ...result } = await settle(async () => tunnelText(status, restart))
      return { ...result, text: [shownSource(source) ?? [], text].flat().join(': ') }
    }),
  )
  const bad = results.find(({ state }) => state === 'fail') ?? results.find(({ state }) => state === 'skip')
  if (bad?.state === 'fail') throw fail(bad.text, bad.fix ?? '')
  if (bad) throw skip(bad.text)
  return results.map(({ text }) => text).join('; ')
}

function tunnelText(status: Omit<TunnelStatus, 'source'>, restart: string): string {
  const { state, url, since, why, attempt, roundTrip, fix } = status
  const payloadUrl = url === null ? 'no payload URL yet' : `payload URL ${url}`
  if (state === 'connecting') throw skip(`connecting for the first time; ${payloadUrl}`)
  if (state === 'waiting')
    throw fail(
      `down since ${localTime(since)}: ${why}; next is attempt ${attempt}; ${payloadUrl}`,
      fix ?? 'check the network, and HTTPS_PROXY if there is a proxy; relay retries by itself',
    )
  if (roundTrip !== null && roundTrip !== 'ok')
    throw fail(`connected to ${url}, but a test message was lost: ${roundTrip}`, `restart ${restart}`)
  const works = roundTrip === 'ok' ? ', and works' : '; the test message of this connection is on its way'
  return `connected to ${url} since ${localTime(since)}${works}`
}

// The sources

/** Checks that each source besides the code host has a secret. */
async function checkSources({ shell, profile, data }: Examined): Promise<string> {
  const sources = await readSources(shell, profile, data)
  if (sources.length === 0) throw skip('none')
  const missing = sources.filter(lacksSecret).map(({ name }) => name)
  if (missing.length > 0)
    throw fail(
      `there is no secret for ${missing.join(', ')}`,
      missing.map((name) => profile.command(`source add ${name}`)).join('; '),
    )
  const placeOf = ({ scheme, secretOrigin }: SetSource): string =>
    isUnsigned(scheme) ? 'nothing proves their deliveries' : `secret in ${secretOrigin?.text}`
  const namesIn = (place: string): string[] =>
    sources.flatMap((source) => (placeOf(source) === place ? source.name : []))
  const places = new Set(sources.map(placeOf))
  return [...places].map((place) => `${place}: ${namesIn(place).join(', ')}`).join('; ')
}
