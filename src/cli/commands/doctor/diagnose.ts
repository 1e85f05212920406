import { deadline } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { isSharedAddress } from '../../../base/shared-store.js'
import { type Clock, systemClock } from '../../../base/time.js'
import { sendOnce as sendOverNetwork, type SendOnce } from '../../../net/client.js'
import { type Database, databaseFile, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import type { Attached } from '../../session/attach.js'
import { profileFolder, storeOf } from '../../settings/complete.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { readStoredClient, withStoredClient } from '../../settings/stored.js'
import { checkAddresses } from './addresses.js'
import { checkApp, openApp } from './app.js'
import { askCodeHost, checkClock, checkCodeHost } from './code-host.js'
import { type CheckContext, createCheckContext } from './context.js'
import { checkDatabase, checkKeychain } from './database.js'
import { checkDisk } from './disk.js'
import { checkHooks } from './hooks.js'
import { checkFolder, checkNode, isMissing } from './machine.js'
import { checkInstance, checkPort } from './network.js'
import { checkClient } from './oauth-client.js'
import { type CheckResult, type Checks, fail, type NamedResult, skip } from './result.js'
import { checkSettings, checkShell } from './settings.js'
import { sharedChecks } from './shared-database.js'
import { checkToken, checkWebhookSecret } from './sign-in.js'
import { checkTunnel } from './tunnel.js'

export interface DiagnoseOptions {
  readonly nodeVersion: string
  readonly clock?: Clock
  readonly sendOnce?: SendOnce
}

/** The time limit of a check. */
const LIMIT_MS = 5000
/** How long to wait for a process that holds the database: the whole command is to answer within 5 s, too. */
const PATIENCE_MS = 1500

/**
 * Checks everything that a profile needs. Independent checks run in parallel, each within a time limit. Changes nothing, except
 * that it writes a record to the database and deletes it. The user's token is sent only to the code host that it came from.
 * @throws the signal's reason when the command is interrupted.
 */
export async function diagnose(
  context: Context,
  flags: CommonFlags,
  options: DiagnoseOptions,
): Promise<NamedResult[]> {
  const node = { check: 'node', ...checkNode(options.nodeVersion) }
  const { result, attached } = await checkSettings(context, flags)
  const settings = { check: 'settings', ...result }
  if (!attached) return [node, settings]
  const shell = { check: 'this shell', ...checkShell(attached) }
  // Before the database is opened, which would correct the permissions.
  const folder = await bounded('folder', () => checkFolder(profileFolder(attached.options)), SHOW_SETTINGS)
  const { database, problem } = await open(attached)
  try {
    // A store that cannot be read is a result of its own check.
    const stored = await (database && readStoredClient(database.secrets))?.catch(() => undefined)
    const checkContext = createCheckContext(withStoredClient(attached, stored), database)
    const data = { database, problem }
    return [node, settings, shell, folder, ...(await checkAll(checkContext, data, context, options))]
  } finally {
    await database?.[Symbol.asyncDispose]()
  }
}

interface Data {
  readonly database?: Database | undefined
  /** Why the database cannot be opened. */
  readonly problem?: string | undefined
}

/** Nothing where the profile has no database, or only the instance has it in memory. */
async function open({ options }: Attached): Promise<Data> {
  const folder = profileFolder(options)
  if (!isSharedAddress(options.store) && (options.store === 'memory' || isMissing(databaseFile(folder))))
    return {}
  try {
    const kind = storeOf(options)
    return { database: await openDatabase({ kind, folder, create: false, patience: PATIENCE_MS }) }
  } catch (error) {
    return { problem: error instanceof RelayError ? error.message : 'The database cannot be opened' }
  }
}

async function checkAll(
  context: CheckContext,
  { database, problem }: Data,
  { signal }: Context,
  { clock = systemClock, sendOnce = sendOverNetwork }: DiagnoseOptions,
): Promise<NamedResult[]> {
  const { provider, providerUrl, store } = context.options
  const answer =
    providerUrl === undefined
      ? undefined
      : askCodeHost(provider, providerUrl, { sendOnce, clock, signal: deadline(LIMIT_MS, signal) })
  answer?.catch(() => {})
  const tokenCheck = { now: clock(), sendOnce, timeLimit: LIMIT_MS, signal }
  const app = await openApp(context, tokenCheck)
  const checks: Checks = {
    ...(isSharedAddress(store)
      ? sharedChecks(context, database, problem)
      : { database: () => checkDatabase(context, problem, database?.sql) }),
    disk: () => checkDisk(context),
    keychain: () => checkKeychain(context),
    instance: () => checkInstance(context),
    port: () => checkPort(context, { signal }),
    tunnel: () => checkTunnel(context),
    'code host': () => checkCodeHost(context, answer),
    clock: () => checkClock(answer),
    'webhook secret': () => checkWebhookSecret(context),
    'OAuth client': () => checkClient(context, tokenCheck),
    token: () => (problem ? skip('the database cannot be opened') : checkToken(context, tokenCheck)),
    hooks: () => checkHooks(context, database, tokenCheck),
    ...(app && { App: () => checkApp(context, app) }),
    addresses: () => checkAddresses(context),
  }
  const fix = store === 'keychain' ? 'unlock the keychain, or choose --store file' : SHOW_SETTINGS
  const results = await Promise.all(
    Object.entries(checks).map(async ([check, run]) => bounded(check, run, fix)),
  )
  signal.throwIfAborted()
  return results
}

/** Runs a check within the time limit. A RelayError's own message is used: it contains no secret. */
async function bounded(
  check: string,
  run: () => CheckResult | Promise<CheckResult>,
  fix: string,
): Promise<NamedResult> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<CheckResult>((resolve) => {
    // Somewhat later than the limit of a request, whose error says more.
    timer = setTimeout(() => resolve(fail(`no answer within ${LIMIT_MS / 1000} s`, fix)), LIMIT_MS + 250)
  })
  const result = await Promise.race([(async () => run())(), late]).catch((error: unknown) =>
    fail(error instanceof RelayError ? error.message : 'the check itself failed', fix),
  )
  clearTimeout(timer)
  return { check, ...result }
}

const SHOW_SETTINGS = 'run relay config, which shows the settings'
