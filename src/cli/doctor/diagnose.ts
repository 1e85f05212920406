import { deadline } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { systemClock, type Clock } from '../../base/time.js'
import { findInstance } from '../../instance/instance.js'
import { outboundFetch } from '../../providers/fetch.js'
import type { Database } from '../../store/database.js'
import { openDatabase } from '../../store/open.js'
import type { Context } from '../context.js'
import { servedSettings } from '../instance-settings.js'
import { profileFolder } from '../settings.js'
import type { Flags } from '../settings/read.js'
import { checkAddresses } from './addresses.js'
import { askCodeHost, checkClock, checkCodeHost } from './code-host.js'
import { gatherFacts, type Facts } from './facts.js'
import { none, wrong, type Finding, type Verdict } from './finding.js'
import { checkFolder, checkNode } from './machine.js'
import { checkInstance, checkPort } from './network.js'
import { checkSettings } from './settings.js'
import { checkClient, checkToken, checkWebhookSecret } from './sign-in.js'
import { checkKeychain, checkStore } from './store.js'
import { checkTunnel } from './tunnel.js'

export interface DiagnoseOptions {
  readonly log: Log
  readonly nodeVersion: string
  readonly clock?: Clock
  readonly fetch?: typeof fetch
}

/** How long a check may take, in milliseconds. */
const LIMIT = 5000

/**
 * Checks everything that a profile needs. Independent checks run side by side; none takes longer than its limit. Nothing
 * is changed but for a record written to the store and taken out again, and no token leaves this machine.
 * @throws the signal's reason when the command is interrupted.
 */
export async function diagnose(context: Context, flags: Flags, options: DiagnoseOptions): Promise<Finding[]> {
  const node: Finding = { check: 'node', ...checkNode(options.nodeVersion) }
  const { verdict, reading } = checkSettings(context, flags, options.log)
  const settings: Finding = { check: 'settings', ...verdict }
  if (!reading) return [node, settings]
  // Before the store is opened, which would put the permissions right.
  const folder = await bounded('folder', () => checkFolder(profileFolder(reading.options)), LOOK)
  const { database, problem } = await open(reading.options, folder)
  try {
    const facts = await profileFacts(context, flags, reading.options, database)
    return [node, settings, folder, ...(await checkAll(facts, problem, context, options))]
  } finally {
    await database?.[Symbol.asyncDispose]()
  }
}

async function open(
  options: Facts['options'],
  { state }: Finding,
): Promise<{ database?: Database; problem?: string }> {
  const kind = options.store ?? 'file'
  if (kind === 'memory' || state === 'none') return {}
  try {
    return { database: await openDatabase({ kind, folder: profileFolder(options) }) }
  } catch (error) {
    return { problem: error instanceof RelayError ? error.message : 'The store cannot be opened' }
  }
}

async function profileFacts(
  { signal }: Context,
  flags: Flags,
  options: Facts['options'],
  database: Database | undefined,
): Promise<Facts> {
  const store = database?.store
  const instance = store && (await findInstance(store, { signal }).catch(() => undefined))
  return gatherFacts(instance ? servedSettings(instance, flags, options) : options, { store, instance })
}

async function checkAll(
  facts: Facts,
  problem: string | undefined,
  { signal }: Context,
  { clock = systemClock, fetch = outboundFetch }: DiagnoseOptions,
): Promise<Finding[]> {
  const { providerUrl } = facts
  const answer =
    providerUrl === undefined
      ? undefined
      : askCodeHost(providerUrl, { fetch, clock, signal: deadline(LIMIT, signal) })
  answer?.catch(() => {})
  const checks: readonly (readonly [string, () => Verdict | Promise<Verdict>])[] = [
    ['store', () => checkStore(facts, problem)],
    ['keychain', () => checkKeychain(facts)],
    ['instance', () => checkInstance(facts)],
    ['port', () => checkPort(facts)],
    ['tunnel', () => checkTunnel(facts)],
    ['code host', () => checkCodeHost(facts, answer)],
    ['clock', () => checkClock(answer)],
    ['webhook secret', () => checkWebhookSecret(facts)],
    ['OAuth client', () => checkClient(facts)],
    [
      'token',
      () => (problem === undefined ? checkToken(facts, clock()) : none('the store cannot be opened')),
    ],
    ['addresses', () => checkAddresses(facts)],
  ]
  const mend = facts.kind === 'keychain' ? 'unlock the keychain, or choose --store file' : LOOK
  const findings = await Promise.all(checks.map(async ([check, run]) => bounded(check, run, mend)))
  signal.throwIfAborted()
  return findings
}

/** What a check says, or that it failed, or took too long. What relay itself says names the remedy, and no secret. */
async function bounded(check: string, run: () => Verdict | Promise<Verdict>, mend: string): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Verdict>((resolve) => {
    // A little later than the code host's own limit, which says more.
    timer = setTimeout(() => resolve(wrong(`no answer within ${LIMIT / 1000} s`, mend)), LIMIT + 250)
  })
  const verdict = await Promise.race([begin(run), late]).catch((error: unknown) =>
    wrong(error instanceof RelayError ? error.message : 'the check itself failed', mend),
  )
  clearTimeout(timer)
  return { check, ...verdict }
}

const LOOK = 'relay config, which shows what is in force'

async function begin(run: () => Verdict | Promise<Verdict>): Promise<Verdict> {
  return run()
}
