import { sleep } from '../../base/wait.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { Secret } from '../../base/secret.js'
import { parsePrivateAddress } from '../../base/address.js'
import { neverSentReason } from '../../senders/events.js'
import {
  explainHookError,
  formerText,
  isOwnHook,
  parseHookEvents,
  registerHook,
  removeFormer,
  type SavedHook,
  SavedHooks,
  unregisterHook,
} from '../../codehost/hooks.js'
import type { HookPause, RepoHook } from '../../codehost/host.js'
import { Refusal } from '../../codehost/refusal.js'
import { hostEvents, newHostSecret } from '../../senders/hosts.js'
import { parseMatch } from '../../journal/filter.js'
import type { Summary } from '../../journal/types.js'
import { secretPrint } from '../../instance/protocol.js'
import { makeProfileSecret } from '../../webhook/profile-secret.js'
import { USER_COMMAND, REPOSITORY, OPTIONAL_REPOSITORY } from '../options.js'
import {
  define,
  type CommandGroup,
  type FlagSpec,
  type Flags,
  printEach,
  type Shell,
  shellWith,
} from '../command.js'
import { parseFlag } from '../input.js'
import { wakeups } from '../follow.js'
import { localTime } from '../output/time.js'
import { hookStateText, pauseObject, pauseText } from '../output/deliveries.js'
import { marked, outside } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { notServed, startCommand } from '../advice.js'
import type { ProfileOptions } from '../profile.js'
import { openUserProfile, type UserProfile } from '../user-profile.js'
import { sharedSecretText, webhookSecret } from '../webhook-secret.js'
import { findOwnHook, payloadAddress, placeOf } from '../hook-place.js'
import { ANY_OWNER, formatRepo, parseRepo } from '../../codehost/repo.js'

const HOOK_COMMAND = { ...USER_COMMAND, args: [REPOSITORY] } as const
const HOOK_URL: FlagSpec = [
  '--url <url>',
  "the hook's address",
  { defaultText: "the tunnel's, else the public address with /webhook" },
]

const addCommand = define({
  ...HOOK_COMMAND,
  description: `Creates the repository's hook with content type application/json and the profile's webhook secret. If one already leads
here, or this profile created one before, repairs that one instead.`,
  examples: 'relay hook add octo/demo\nrelay hook add octo/demo --events push,pull_request',
  options: [
    HOOK_URL,
    ['--events <names>', 'only these events, separated by commas', { defaultText: 'every event' }],
  ],
  env: [...HOOK_COMMAND.env, 'webhookSecret', 'publicUrl'],
  run: runAdd,
  print: printEach(({ name, added }, out) => out.result(hookStateText(name, added))),
  json: ({ added: { hook, created, repaired, found } }) => ({
    ...repoHookObject(hook, true),
    created,
    repaired,
    found,
  }),
})

export const hookListCommand = define({
  ...HOOK_COMMAND,
  description: `Lists all hooks of the repository with the last answer to each, and marks those that lead here. Without a repository,
lists the hooks that this profile created.`,
  examples: 'relay hook list\nrelay hook list octo/demo --json | jq .url',
  args: [OPTIONAL_REPOSITORY],
  run: runList,
  print: printList,
  json: listJson,
})

const testCommand = define({
  ...HOOK_COMMAND,
  description: `Makes the code host send a ping (Gitea: a push of the last commit) and waits up to 30 seconds until it is in the journal.
Needs a running relay serve.`,
  examples: 'relay hook test octo/demo',
  exits: [4, 6, 7, 8, 130],
  run: runTest,
  print: ({ repo, event, n }, out) => out.result(`${event} of ${repo} arrived: #${n}`),
  json: ({ repo, hook, n }) => ({ type: 'test', repo, hook, n }),
})

const removeCommand = define({
  ...HOOK_COMMAND,
  description: 'Removes the hooks of the repository that lead here, or to --url. Others stay.',
  examples: `relay hook remove octo/demo
relay hook remove octo/gone --local  the repository was deleted`,
  options: [HOOK_URL, ['--local', 'forget the hook here, and ask the code host nothing']],
  exits: [4, 6, 8, 130],
  run: runRemove,
  print: printEach(printRemoved),
  json: (removed) =>
    removed.type === 'removed' ? repoHookObject(removed.hook, true) : savedHookObject(removed.saved),
})

export const hookCommand: CommandGroup = {
  ...USER_COMMAND,
  settings: [],
  description: `Makes the code host send a repository's deliveries here, as the signed-in user. relay serve --hook does the same while it
runs.`,
  examples: 'relay hook add octo/demo\nrelay hook list octo/demo',
  subcommands: {
    add: { summary: 'create a hook, or repair it', ...addCommand },
    list: { summary: "list a repository's hooks", ...hookListCommand },
    test: { summary: 'send a ping through the hook', ...testCommand },
    remove: { summary: 'remove the hooks that lead here', ...removeCommand },
  },
}

/** Parts of a command about the hooks of one repository, such as `octo/demo`. */
type HookProfile = Awaited<ReturnType<typeof openHookProfile>>

async function openHookProfile(shell: Shell, flags: Flags, text: string, options: ProfileOptions = {}) {
  // Checked first, since an error needs neither the profile nor the code host.
  parseRepo(text, ANY_OWNER)
  const profile = await openUserProfile(shell, flags, options)
  const repo = parseRepo(text, profile.host)
  return { ...profile, place: placeOf(shell, profile, repo), name: formatRepo(repo) }
}

/** Describes a hook for a program. `ours`: it leads here. */
function repoHookObject(hook: RepoHook, ours: boolean) {
  const { id, url, active, contentType, events, hasSecret = null, lastResponse = null } = hook
  const pause = hook.paused && { paused: pauseObject(hook.paused) }
  const how = { active, ...pause, contentType: outside(contentType), events: outside(events), hasSecret }
  return marked({ type: 'hook', id, url: outside(url), ours, ...how, lastResponse: outside(lastResponse) })
}

async function addressOf(profile: UserProfile, url?: string): Promise<string | undefined> {
  return url === undefined ? payloadAddress(profile) : parseFlag('--url', url, parsePrivateAddress).href
}

// add

type RepoInput = Flags & { readonly repo: string }
type AddInput = RepoInput & { readonly url?: string; readonly events?: string }

async function* runAdd(shell: Shell, flags: AddInput) {
  const { out, signal } = shell
  const events = flags.events === undefined ? undefined : parseHookEvents('--events', flags.events)
  await using profile = await openHookProfile(shell, flags, flags.repo)
  const { place, name } = profile
  const { name: provider, hookEvents } = profile.host
  // Gitea names the events of hooks differently from those of deliveries. A host with names of its own refuses others.
  for (const event of provider === 'gitea' || hookEvents ? [] : (events ?? [])) {
    const why = neverSentReason(event, provider, hostEvents(provider))
    if (why !== undefined) out.log.warn(why)
  }
  const url = await addressOf(profile, flags.url)
  if (url === undefined) throw notServed(profile, ' --tunnel, or give the address with --url')
  const settings = { url, secret: await secretOf(shell, profile), events }
  const shared = sharedSecretText(profile.origins)
  if (shared !== undefined) out.log.warn(shared)
  const chosen = flags.url !== undefined
  const added = await registerHook(place, { settings, permanent: true, chosen })
  yield { name, added }
  const { paused } = added.hook
  if (paused) out.log.warn(`The hook of ${name} ${pauseText(paused, testCommandOf(profile, name))}`)
  const { former } = added
  if (former.length === 0) return
  const after = profile.limits.hookLeaves
  const acceptsFormer = profile.values.webhookSecretPrevious !== undefined
  out.say(formerText(place, added, { after, acceptsFormer }))
  await removeFormer(place, former, { after, stop: signal })
}

/** Command line that tests a hook, after one that starts relay if none runs. */
function testCommandOf(profile: UserProfile, name: string): string {
  const test = profile.command(`hook test ${name}`)
  return profile.instance ? test : `start ${startCommand(profile)}, then ${test}`
}

/** The secret that the running instance verifies with, or that the next one will. */
async function secretOf(shell: Shell, profile: UserProfile): Promise<Secret> {
  const { instance, database } = profile
  const { secret } = (await webhookSecret(shell, profile, { data: database })) ?? {}
  if (!instance) return secret ?? makeProfileSecret(database.store, newHostSecret(profile.host.name))
  if (secret && secretPrint(instance, secret) === instance.secretPrint) return secret
  throw new RelayError(
    'settings',
    `Process ${instance.pid} serves profile ${instance.profile} with another webhook secret than this shell has. Set the same RELAY_WEBHOOK_SECRET here, or restart the instance`,
  )
}

// list

/** The hooks that this profile made, or all of one repository. */
type HookList =
  | {
      readonly type: 'saved'
      readonly saved: readonly SavedHook[]
      readonly none: string
      finish(name: string): string
    }
  | {
      readonly type: 'all'
      readonly all: readonly FoundHook[]
      readonly none: string
      /** Advice about hooks that lead here, in sentences. */
      readonly advice: readonly string[]
    }
type FoundHook = RepoHook & { readonly ours: boolean }

async function runList(
  shell: Shell,
  flags: Flags & { readonly repo?: string | undefined },
): Promise<HookList> {
  if (flags.repo !== undefined) return listAll(shell, { ...flags, repo: flags.repo })
  // The hooks that this profile made, without a request.
  await using profile = await openUserProfile(shell, flags)
  const { database, host } = profile
  const add = (name: string): string => profile.command(`hook add ${name}`)
  const none = `This profile has created no hooks at ${host.url}. ${add('<owner/repo>')} creates one`
  return { type: 'saved', saved: await new SavedHooks(database.store, host).list(), none, finish: add }
}

async function listAll(shell: Shell, flags: RepoInput): Promise<HookList> {
  await using profile = await openHookProfile(shell, flags, flags.repo)
  const { place, name } = profile
  const saved = await place.saved.get(place.repo)
  const address = payloadAddress(profile)
  const found = await place.hooks.list(place.repo).catch((error: unknown) => {
    throw explainHookError(error, place)
  })
  const all = found.map((hook) => ({ ...hook, ours: isOwnHook(hook, saved, address) }))
  const none = `${name} has no hooks. ${profile.command(`hook add ${name}`)} creates one`
  const test = testCommandOf(profile, name)
  const advice = all.flatMap(({ id, ours, paused }) =>
    ours && paused ? [`Hook ${id} of ${name} ${pauseText(paused, test)}`] : [],
  )
  return { type: 'all', all, none, advice }
}

const HEADINGS = ['leads', 'id', 'last answer', 'settings', 'address']

function printList(list: HookList, out: Output): void {
  if (list.type === 'saved') {
    if (list.saved.length === 0) return out.say(list.none)
    const rows = list.saved.map(({ id, url, ...repo }) => {
      const name = formatRepo(repo)
      // The hook's creation was interrupted.
      return [name, url, id === null ? `perhaps not there; finish with ${list.finish(name)}` : '']
    })
    return out.table(rows)
  }
  if (list.all.length === 0) return out.say(list.none)
  const rows = list.all.map((hook) => {
    const { id, url, active, paused, contentType, events, hasSecret, lastResponse, ours } = hook
    const answer = lastResponse ? `${lastResponse.code} ${lastResponse.message}`.trimEnd() : 'unknown'
    const settings = [
      ...(paused ? [pausedUntil(paused)] : active ? [] : ['inactive']),
      contentType,
      ...(hasSecret === false ? ['no secret'] : []),
      events.includes('*') ? 'every event' : events.join(' '),
    ]
    return [ours ? 'here' : '', String(id), answer, settings.join(', '), url]
  })
  out.table([HEADINGS, ...rows])
  for (const line of list.advice) out.say(line)
}

function pausedUntil({ until }: HookPause): string {
  return until === undefined ? 'disabled' : `paused until ${localTime(until)}`
}

function listJson(list: HookList) {
  return list.type === 'saved'
    ? list.saved.map(savedHookObject)
    : list.all.map(({ ours, ...hook }) => repoHookObject(hook, ours))
}

function savedHookObject({ id, url, permanent, ...repo }: SavedHook) {
  return marked({ type: 'hook', repo: outside(formatRepo(repo)), id, url: outside(url), permanent })
}

// remove

type RemoveInput = RepoInput & { readonly url?: string; readonly local?: boolean }

/** A hook that was removed, or only forgotten here. */
type Removed =
  | { readonly type: 'removed'; readonly name: string; readonly hook: RepoHook }
  | { readonly type: 'forgotten'; readonly name: string; readonly saved: SavedHook; readonly host: string }

async function* runRemove(shell: Shell, flags: RemoveInput): AsyncGenerator<Removed> {
  if (flags.local && flags.url !== undefined)
    throw new RelayError('usage', '--url names a hook at the code host, which --local does not ask')
  await using profile = await openHookProfile(shell, flags, flags.repo)
  const { place, name } = profile
  const saved = await place.saved.get(place.repo)
  if (flags.local) {
    if (!saved) throw new RelayError('no_match', `This profile has created no hook of ${name}`)
    await place.saved.delete(place.repo)
    yield { type: 'forgotten', name, saved, host: profile.host.url }
    return
  }
  const removed = await unregisterHook(place, await addressOf(profile, flags.url)).catch((error: unknown) => {
    const refusal = error instanceof RelayError ? error.cause : undefined
    const isKnown = !(refusal instanceof Refusal) || refusal.missingRight !== undefined
    if (!saved || isKnown || refusal.providerStatus !== 404) throw error
    const next = `If the repository is gone, ${profile.command(`hook remove ${name} --local`)} forgets its hook`
    throw new RelayError('not_found', `${toRelayError(error).message}. ${next}`, { cause: error })
  })
  for (const hook of removed) yield { type: 'removed', name, hook }
  if (removed.length === 0)
    throw new RelayError(
      'no_match',
      `${name} has no hook that leads here. ${profile.command(`hook list ${name}`)} shows all; name the address of another with --url`,
    )
}

function printRemoved(removed: Removed, out: Output): void {
  const { type, name } = removed
  if (type === 'removed') out.result(`hook of ${name} removed: ${removed.hook.url}`)
  else out.result(`hook of ${name} forgotten here, and not removed at ${removed.host}: ${removed.saved.url}`)
}

// test

async function runTest(shell: Shell, flags: RepoInput) {
  await using profile = await openHookProfile(shell, flags, flags.repo, { problems: 'fail' })
  const { place, name } = profile
  if (!profile.instance) throw notServed(profile)
  const hook = await findOwnHook(profile, place)
  const { testEvent, testNeedsEvent, words } = profile.host
  // Without its event, the code host sends nothing and reports no error.
  if (testNeedsEvent && !hook.events.includes(testEvent))
    throw new RelayError(
      'conflict',
      `${words.label} tests a hook with a ${testEvent}, and the hook of ${name} gets none. Add that event: ${profile.command(`hook add ${name} --events ${testEvent},<event>`)}`,
    )
  const { n, event } = await testHook(shell, profile, hook)
  return { repo: name, hook: hook.id, n, event }
}

/** Number of recent deliveries of the event among which the test is searched. */
const RECENT = 20

/** Runs works at the same time until one of them ends, then aborts the others. @throws as the one that ended */
async function firstOf<Result>(
  stop: AbortSignal,
  ...works: readonly ((signal: AbortSignal) => Promise<Result>)[]
): Promise<Result> {
  const ended = new AbortController()
  const signal = AbortSignal.any([stop, ended.signal])
  const running = works.map((work) => work(signal))
  try {
    return await Promise.race(running)
  } finally {
    ended.abort()
    await Promise.allSettled(running)
  }
}

/** Makes the code host send a test, and waits until it is in the journal. */
async function testHook(shell: Shell, profile: HookProfile, hook: RepoHook): Promise<Summary> {
  const { place, name, host, limits } = profile
  const { testEvent: event } = host
  const logged = await newestLogged(profile, hook)
  const before = new Map((await recent(profile)).map(({ n, duplicates }) => [n, duplicates]))
  await place.hooks.test(place.repo, hook.id).catch((error: unknown) => {
    throw explainHookError(error, place)
  })

  /** Id of the test, once the log shows it. */
  let guid: string | undefined
  /** True if only the time decides: there is no log, and no delivery that names the repository. */
  let isByTime = false
  const isOwnHook = ({ deliveryId, hookId, repo }: Summary): boolean => {
    if (deliveryId === guid) return true
    // The hook's id decides, since a renamed repository sends its new name.
    if (hookId !== '') return hookId === String(hook.id)
    return isByTime || repo === null || repo.toLowerCase() === name.toLowerCase()
  }
  /** Searches the log for the test. Throws if it failed, so that this is reported at once. */
  const lookInLog = async (): Promise<void> => {
    isByTime = !logged
    const newest = logged && (await newestLogged(profile, hook))?.find((entry) => entry.event === event)
    if (!newest || logged.some(({ id }) => id === newest.id)) return
    const { statusCode, status } = newest
    if (statusCode < 200 || statusCode >= 300)
      throw notArrived(profile, hook, 'The delivery did not arrive', `${statusCode} ${status}`)
    guid = newest.guid
  }

  // An equal delivery is counted as a duplicate of an earlier one.
  const find = async (): Promise<Summary | undefined> =>
    (await recent(profile)).find(
      (entry) => entry.duplicates > (before.get(entry.n) ?? -1) && isOwnHook(entry),
    )
  /** The instance announces what arrives. Without one, which has stopped meanwhile, the journal is read. */
  const inJournal = async (signal: AbortSignal): Promise<Summary | undefined> => {
    for await (const _ of wakeups(shellWith(shell, { signal }), profile, { limit: limits.arrival })) {
      const arrived = await find()
      if (arrived) return arrived
    }
    return undefined
  }
  /** The code host announces nothing, so that its log is read after 1, 2, 4 s. */
  const byLog = async (signal: AbortSignal): Promise<Summary | undefined> => {
    for (let [at, next] = [0, limits.logLook]; ; [at, next] = [next, next * 2]) {
      await sleep(next - at, { signal })
      await lookInLog()
      const arrived = await find()
      if (arrived) return arrived
    }
  }
  const arrived = await firstOf(shell.signal, inJournal, byLog)
  if (arrived) return arrived
  const all = await place.hooks.list(place.repo).catch(ignoreFailure)
  const last = all?.find(({ id }) => id === hook.id)?.lastResponse
  const what = `The delivery did not arrive within ${limits.arrival / 1000} s`
  throw notArrived(profile, hook, what, last && `${last.code} ${last.message}`)
}

async function recent({ journal, host }: UserProfile): Promise<readonly Summary[]> {
  const found: Summary[] = []
  for await (const entry of (await journal()).select({ events: [parseMatch(host.testEvent)], last: RECENT }))
    found.push(entry)
  return found
}

/** Returns the newest entries of the hook's log. Undefined if the code host has none, or fails. */
async function newestLogged({ place: { hooks, repo } }: HookProfile, { id }: RepoHook) {
  return (await hooks.log?.(repo, id).page().catch(ignoreFailure))?.deliveries
}

function ignoreFailure(error: unknown): undefined {
  if (toRelayError(error).kind === 'cancelled') throw error
}

function notArrived(
  { command, host, place, name }: HookProfile,
  { id }: RepoHook,
  what: string,
  answer: string | undefined,
): RelayError {
  const { url, words } = host
  const got = answer === undefined ? '' : ` The code host got: ${answer}.`
  const hint = words.testHint?.({ ...place.repo, url, id })
  const [log, add, doctor] = ['log --refused', `hook add ${name}`, 'doctor'].map(command)
  return new RelayError(
    'timed_out',
    `${what}.${got}${hint === undefined ? '' : ` ${hint}.`} ${log} shows what was refused; ${add} repairs the hook; ${doctor} checks the rest`,
  )
}
