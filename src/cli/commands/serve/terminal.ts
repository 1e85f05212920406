import { type FSWatcher, watch } from 'node:fs'
import path from 'node:path'
import { toRelayError } from '../../../base/errors.js'
import { Queue } from '../../../base/queue.js'
import type { ReadRoutes } from '../../../base/settings.js'
import { hostSource } from '../../../base/source-names.js'
import { didYouMean } from '../../../base/text.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import { labelOf, type Route, splitId } from '../../../dispatch/routes.js'
import { readRoutes } from '../../../dispatch/routing.js'
import { alternatives, eventMatching, matches } from '../../../journal/filter.js'
import { neverSentReason } from '../../../senders/events.js'
import { hostEvents } from '../../../senders/hosts.js'
import { senderOf } from '../../../senders/senders.js'
import type { Instance } from '../../../serve/instance.js'
import type { Shell } from '../../command.js'
import type { Context } from '../../context.js'
import { bold, dim, joined, t } from '../../output/text.js'
import { isOfFolder, type LoadedSettings } from '../../settings/read.js'
import type { SetSource } from '../../sources.js'
import { watchedFiles } from '../../settings/files.js'

/** Handles the keys of a running `serve`. Undefined without a terminal. */
export function listenToKeys(
  shell: Shell,
  instance: Instance,
  {
    nameOf,
    command,
    quit,
  }: {
    readonly nameOf: (id: string) => string
    /** Completes a command line of relay for the profile. */
    readonly command: (line: string) => string
    readonly quit: () => void
  },
): Disposable | undefined {
  const { out } = shell
  let opening: Promise<void> | undefined
  // One at a time, since the key may be held down.
  const open = (): void => {
    opening ??= openInspectorOf(shell, instance, command).finally(() => (opening = undefined))
  }
  const openInspector = instance.inspector && open
  const help = [
    ['r', 'retry what waits now'],
    ...(openInspector ? [['i', 'open the inspector']] : []),
    ['q', 'quit'],
    ['?', 'this list'],
  ].map(([key = '', text = '']) => t`${bold(key)} ${text}`)
  const keys: Readonly<Record<string, (() => void) | undefined>> = {
    r() {
      const waiting = waitingText(instance.targets(), nameOf)
      out.say(waiting === undefined ? 'Nothing to try again' : `Trying again now: ${waiting}`)
      instance.retryNow()
    },
    i: openInspector,
    q: quit,
    '?': () => out.say(joined(help, dim('  ·  '))),
    // Enter prints an empty line, to set off later lines.
    '\r': () => out.say(''),
  }
  const stop = shell.onKey((key) => keys[key]?.())
  return stop && { [Symbol.dispose]: stop }
}

/** Formats `3 for app, 1 for deploy.sh`. Undefined if nothing waits for a configured target. */
export function waitingText(
  targets: readonly TargetStatus[],
  nameOf: (id: string) => string,
): string | undefined {
  const waiting = targets.filter(({ queued, state }) => queued > 0 && state !== 'gone')
  return waiting.map(({ id, queued }) => `${queued} for ${nameOf(id)}`).join(', ') || undefined
}

/** Opens the inspector of this process in the browser. Does not reject. */
async function openInspectorOf(
  shell: Shell,
  instance: Instance,
  command: (line: string) => string,
): Promise<void> {
  const { out, signal } = shell
  const { url, inspector: load } = instance
  try {
    const [{ openInspector }, inspector] = await Promise.all([import('../../browser.js'), load?.()])
    if (!inspector) return
    const code = inspector.issueCode()
    const isPending = async (): Promise<boolean> => inspector.isPending(code)
    const wakeups = (limit: number) => changesOf(instance, { limit, signal })
    const result = await openInspector(shell, { url, code, isPending, wakeups })
    out.say(
      result === 'opened'
        ? 'The inspector is open in your browser'
        : `No browser opened it. Open ${url}/inspect/ yourself, with the code of ${command('inspect --no-browser')}`,
    )
  } catch (error) {
    if (!signal.aborted)
      out.log.error(`the inspector could not be opened: ${toRelayError(error).message}`, error)
  }
}

/** Yields at once, and at each use of a code that opens the inspector, for `limit` milliseconds. */
async function* changesOf(
  instance: Instance,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): AsyncGenerator<unknown, void> {
  // One wait is enough for any number of uses.
  const uses = new Queue<unknown>(1, () => undefined)
  using _ = instance.subscribe((event) => event.type === 'code used' && uses.push(event))
  yield undefined
  yield* uses.within(limit, signal)
}

/** Time within which changes of a file count as one, since editors write in several steps. Milliseconds. */
const SETTLE_MS = 100

/** A watch of the settings files, until it is disposed of. */
export interface SettingsWatch extends Disposable {
  /** Calls `reload` whenever the settings may have changed, including changes since the watch began. */
  start(reload: () => void): void
}

/**
 * Watches for SIGHUP, and for settings files that change, appear or disappear. Called before the settings are read. If
 * a folder cannot be watched, only SIGHUP reloads.
 */
export function watchSettings(context: Context): SettingsWatch {
  let timer: NodeJS.Timeout | undefined
  let isMissed = false
  let onChange = (): void => void (isMissed = true)
  const soon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => onChange(), SETTLE_MS)
  }
  const watchers = watchedFiles(context).map((file) => watchFile(file, soon))
  const stopListening = context.onHangup(soon)
  return {
    start(reload) {
      onChange = reload
      if (isMissed) reload()
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      stopListening()
      for (const watcher of watchers) watcher?.close()
    },
  }
}

/** Watches the folder of a file, since another file can replace it under its name. */
function watchFile(file: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(path.dirname(file), (_, name) => name === path.basename(file) && changed())
    return watcher.on('error', () => watcher.close())
  } catch {
    return undefined
  }
}

/**
 * Finds routes that are valid but probably a mistake: an event that the code host never sends, an unknown source, a
 * repeated route; commands from the folder's files, whose author can be anyone; and a secret from there, since its
 * readers can sign deliveries that run commands.
 */
export function routeWarnings(
  { ignore, ...given }: ReadRoutes,
  {
    provider,
    origins,
    leftOutExec,
    sources,
    command,
  }: Pick<LoadedSettings, 'origins' | 'leftOutExec'> & {
    readonly command: (line: string) => string
    readonly provider: string
    readonly sources: readonly SetSource[]
  },
): string[] {
  const warnings: string[] = []
  const warn = (setting: RouteSetting, why: string | undefined): void => {
    if (why !== undefined) warnings.push(`${origins[setting]?.text ?? setting}: ${why}`)
  }
  const events = hostEvents(provider)
  const routes = settingsOfRoutes(given)
  const host = hostSource(provider)
  const names = [host, ...sources.map(({ name }) => name)]
  const texts = [
    ...routes.flatMap(([setting, { match }]) =>
      alternatives(match).map(({ text }) => [setting, text] as const),
    ),
    ...ignore.flatMap((list) => alternatives({ text: list }).map(({ text }) => ['ignore', text] as const)),
  ]
  for (const [setting, text] of texts) {
    const never = neverSentReason(text, provider, events)
    const meant = never !== undefined && names.includes(text)
    const why = meant ? `for the events of the source ${text}, write ${text}/*` : never
    warn(setting, whyNoSource(text, names) ?? why)
  }
  for (const [i, [setting, route]] of routes.entries()) {
    const { name = host, match } = route
    if (match.text === '*' && name !== host && names.includes(name))
      warn(
        setting,
        `${name} is the name of a target that gets every event. For those of the source, write ${name}/*=`,
      )
    const earlier = routes.slice(0, i).map(([, one]) => one)
    warn(setting, whyTwice(route, earlier) ?? whySameName(route, earlier))
  }
  if (leftOutExec) warnings.push(leftOutText(leftOutExec, command))
  warnings.push(...folderWarnings(routes, sources, origins))
  return warnings
}

/** Warns of what comes from the folder's files: targets, commands, and a secret that runs commands. */
function folderWarnings(
  routes: readonly (readonly [RouteSetting, Route])[],
  sources: readonly SetSource[],
  origins: LoadedSettings['origins'],
): string[] {
  const warnings: string[] = []
  const tokens = sources.filter(
    ({ scheme, secrets }) => senderOf(scheme).coverage(secrets.current) === 'sender',
  )
  const [ofFolder] = routes.find(([, route]) => route.ofFolder) ?? []
  if (ofFolder !== undefined && tokens.length > 0)
    warnings.push(
      `${origins[ofFolder]?.text ?? ofFolder}: only this folder names the targets, so they get deliveries of ${tokens.map(({ name }) => name).join(', ')} without the token, which is the secret itself. Name a target with --forward to send it there`,
    )
  const commands = routes.filter(([, { target }]) => target.kind === 'command')
  for (const [setting, { label }] of commands) {
    const origin = origins[setting]
    if (origin && isOfFolder(origin))
      warnings.push(`${origin.text} runs a command for deliveries: ${label.replace(/exec:/, '')}`)
  }
  const ofSources = sources.map(({ secretOrigin }) => secretOrigin)
  const secrets = [origins.webhookSecret, origins.webhookSecretPrevious, ...ofSources]
  const secret = secrets.find((origin) => origin && isOfFolder(origin))
  if (commands.length > 0 && secret)
    warnings.push(`anyone who can read ${secret.text} can sign deliveries that run commands here`)
  return warnings
}

type RouteSetting = 'forward' | 'exec' | 'routes' | 'ignore'

/** Reads all routes, each with the setting that it is from. */
function settingsOfRoutes(given: Omit<ReadRoutes, 'ignore'>): (readonly [RouteSetting, Route])[] {
  const none = { ...given, forward: [], exec: [], routes: [], reply: [] }
  const of = (setting: 'forward' | 'exec' | 'routes') =>
    readRoutes({ ...none, [setting]: given[setting] }).map((route) => [setting, route] as const)
  return [...of('forward'), ...of('exec'), ...of('routes')]
}

/** Describes commands that were left out, without quoting them: an agent reads this, and their author can be anyone. */
export function leftOutText(
  { count, origin }: NonNullable<LoadedSettings['leftOutExec']>,
  command: (line: string) => string,
): string {
  const commands = count === 1 ? 'its command is' : `its ${count} commands are`
  return `${origin.text}: ${commands} left out, since you have not seen them. Read them, then start ${command('mcp')} with --allow-project-exec, or run ${command('serve')} in a terminal, which lists them`
}

function whyNoSource(match: string, names: readonly string[]): string | undefined {
  const [name = ''] = match.split('/', 1)
  if (name === match || names.includes(name)) return undefined
  return `${match} is of the source ${name}, which relay does not receive from${didYouMean(name, names)}. Add it with --source`
}

function whyTwice({ id, label, match, where, target }: Route, earlier: readonly Route[]): string | undefined {
  if (earlier.some((one) => one.id === id))
    return `${label} is there twice, and gets each delivery once. Remove one`
  // An earlier route whose match includes this one, or the reverse.
  const other = earlier.find(
    (one) =>
      addressOf(one.target) === addressOf(target) &&
      one.where.length === 0 &&
      where.length === 0 &&
      (covers(one, match) || covers({ match }, one.match)),
  )
  if (!other) return undefined
  return `deliveries that fit both ${match.text} and ${other.match.text} go twice to ${labelOf(`*=${splitId(id).target}`)}. Remove one of the routes`
}

function whySameName({ id, name }: Route, earlier: readonly Route[]): string | undefined {
  const other = earlier.find((one) => name !== undefined && one.name === name && one.id !== id)
  if (!other) return undefined
  return `${name} is the name of two targets, so that it identifies neither when an address is changed. Give one another name, or write both events in one match: push,issues`
}

/** True if a route's match includes one of the events of another match. */
function covers({ match }: Pick<Route, 'match'>, other: Route['match']): boolean {
  return alternatives(other).some((each) => matches(match, eventMatching(each)))
}

function addressOf(target: Route['target']): string {
  return target.kind === 'http' ? target.url : target.command
}
