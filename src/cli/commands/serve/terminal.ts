import { type FSWatcher, watch } from 'node:fs'
import path from 'node:path'
import { toRelayError } from '../../../base/errors.js'
import type { RouteSettings } from '../../../base/settings.js'
import { didYouMean } from '../../../base/text.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import { parseExec, parseForward, type Route } from '../../../dispatch/routes.js'
import { eventMatching, matches } from '../../../journal/filter.js'
import { neverSentReason } from '../../../codehost/events.js'
import { hostScheme, schemeOf } from '../../../codehost/schemes.js'
import { proofsFor } from '../../../schemes/proof.js'
import type { Instance } from '../../../serve/instance.js'
import type { PrintingShell } from '../../command.js'
import type { Context } from '../../context.js'
import { pollWakeups } from '../../follow.js'
import { bold, dim, joined, t } from '../../output/text.js'
import { isOfFolder, type LoadedSettings, type Origin } from '../../settings/read.js'
import type { SetSource } from '../../sources.js'
import { watchedFiles } from '../../settings/files.js'

/** Handles the keys of a running `serve`. Undefined without a terminal. */
export function listenToKeys(
  shell: PrintingShell,
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
  targets: readonly Pick<TargetStatus, 'id' | 'queued' | 'state'>[],
  nameOf: (id: string) => string,
): string | undefined {
  const waiting = targets.filter(({ queued, state }) => queued > 0 && state !== 'gone')
  return waiting.map(({ id, queued }) => `${queued} for ${nameOf(id)}`).join(', ') || undefined
}

/** Opens the inspector of this process in the browser. Does not reject. */
async function openInspectorOf(
  shell: PrintingShell,
  { url, inspector: load }: Instance,
  command: (line: string) => string,
): Promise<void> {
  const { out, signal } = shell
  try {
    const [{ openInspector }, inspector] = await Promise.all([import('../../browser.js'), load?.()])
    if (!inspector) return
    const code = inspector.issueCode()
    const isPending = async (): Promise<boolean> => inspector.isPending(code)
    const wakeups = (limit: number) => pollWakeups(signal, limit)
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
  { forward, exec, ignore }: RouteSettings,
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
  const warn = (setting: 'forward' | 'exec' | 'ignore', why: string | undefined): void => {
    if (why !== undefined) warnings.push(`${origins[setting]?.text ?? setting}: ${why}`)
  }
  const { events } = hostScheme(provider)
  const routes = [
    ...forward.map((text) => ['forward', parseForward(text)] as const),
    ...exec.map((text) => ['exec', parseExec(text)] as const),
  ]
  const names = [provider, ...sources.map(({ name }) => name)]
  const texts = [
    ...routes.map(([setting, { match }]) => [setting, match.text] as const),
    ...ignore.map((text) => ['ignore', text] as const),
  ]
  for (const [setting, text] of texts) {
    const never = neverSentReason(text, provider, events)
    const meant = never !== undefined && names.includes(text)
    const why = meant ? `for the events of the source ${text}, write ${text}/*` : never
    warn(setting, whyNoSource(text, names) ?? why)
  }
  for (const [i, [setting, route]] of routes.entries()) {
    const { name = provider, match } = route
    if (match.text === '*' && name !== provider && names.includes(name))
      warn(
        setting,
        `${name} is the name of a target that gets every event. For those of the source, write ${name}/*=`,
      )
    const earlier = routes.slice(0, i).map(([, one]) => one)
    warn(setting, whyTwice(route, earlier))
  }
  const tokens = sources.filter(({ scheme, secrets }) =>
    proofsFor(secrets.current, schemeOf(scheme)).some(({ algorithm }) => algorithm === 'token'),
  )
  if (origins.forward && isOfFolder(origins.forward) && forward.length > 0 && tokens.length > 0)
    warnings.push(
      `${origins.forward.text}: only this folder names the targets, so they get deliveries of ${tokens.map(({ name }) => name).join(', ')} without the token, which is the secret itself. Name a target with --forward to send it there`,
    )
  if (leftOutExec) warnings.push(leftOutText(leftOutExec, command))
  warnings.push(...folderExecWarnings(exec, origins.exec))
  const ofSources = sources.map(({ secretOrigin }) => secretOrigin)
  const secrets = [origins.webhookSecret, origins.webhookSecretPrevious, ...ofSources]
  const secret = secrets.find((origin) => origin && isOfFolder(origin))
  if (exec.length > 0 && secret)
    warnings.push(`anyone who can read ${secret.text} can sign deliveries that run commands here`)
  return warnings
}

function folderExecWarnings(exec: readonly string[], origin: Origin | undefined): string[] {
  if (!origin || !isOfFolder(origin)) return []
  return exec.map((line) => `${origin.text} runs a command for deliveries: ${line}`)
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

function whyTwice({ id, label, match, target }: Route, earlier: readonly Route[]): string | undefined {
  if (earlier.some((one) => one.id === id))
    return `${label} is there twice, and gets each delivery once. Remove one`
  // An earlier route whose match includes this one, or the reverse.
  const other = earlier.find(
    (one) =>
      addressOf(one.target) === addressOf(target) &&
      (matches(one.match, eventMatching(match)) || matches(match, eventMatching(one.match))),
  )
  if (!other) return undefined
  return `deliveries that fit both ${match.text} and ${other.match.text} go twice to ${label.replace(/^[^=/]*=(?=exec:|https?:)/, '')}. Remove one of the routes`
}

function addressOf(target: Route['target']): string {
  return target.kind === 'http' ? target.url : target.command
}
