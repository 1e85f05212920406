import { findOwnApp, type OwnApp } from '../../auth/setup.js'
import { type ErrorKind, RelayError } from '../../base/errors.js'
import {
  catchUp,
  type CatchUpResult,
  findMissed,
  withRetries,
  type RetryOptions,
  requireLog,
} from '../../codehost/catch-up.js'
import { explainLogError, sameAddress, SavedHooks, wokenText } from '../../codehost/hooks.js'
import type { CodeHost, DeliveryLog, HookDelivery, RepoHooks, Repo } from '../../codehost/host.js'
import { parseInstant } from '../../journal/filter.js'
import { USER_COMMAND, OPTIONAL_REPOSITORY } from '../options.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import {
  askAgain,
  caughtUpText,
  eventName,
  failedObject,
  failedText,
  missedObject,
} from '../output/deliveries.js'
import type { Output } from '../output/output.js'
import { localTime } from '../output/time.js'
import { notServed, startCommand } from '../advice.js'
import { openUserProfile, type UserProfile } from '../user-profile.js'
import { ANY_OWNER, formatRepo, parseRepo } from '../../codehost/repo.js'
import { findOwnHook, payloadAddress, placeOf } from '../hook-place.js'

export const catchUpCommand = define({
  ...USER_COMMAND,
  description: `Compares the journal with the code host's log of a repository's hook. Makes the code host send the missing deliveries
again, oldest first, one after the other; the running relay serve receives them. Leaves out those that retention has removed. Without a
repository, catches up through the webhook of the profile's App (relay setup --app-hook) and all hooks that this profile
created. GitHub's log covers 3 days, GitLab's 7; Gitea has none.`,
  examples: 'relay catch-up octo/demo\nrelay catch-up --since 2h --dry-run',
  args: [OPTIONAL_REPOSITORY],
  options: [
    [
      '--since <time>',
      'sent since then: a duration ago (2h), or a time',
      { defaultText: 'as far back as the log goes' },
    ],
    ['--dry-run', 'only list the missing deliveries'],
  ],
  exits: [4, 6, 8, 130],
  run: runCatchUp,
  print: printEach(printRead),
  json,
})

/** Result for one log: the missing deliveries or, without `--dry-run`, the result of catching up. */
type Read = Pick<Source, 'name' | 'object'> &
  (
    | { readonly missing: readonly HookDelivery[] }
    | { readonly result: CatchUpResult; readonly missing?: undefined }
  )

interface CatchUpInput extends Flags {
  readonly repo?: string | undefined
  readonly since?: string
  readonly dryRun?: boolean
}

async function* runCatchUp(shell: Shell, flags: CatchUpInput): AsyncGenerator<Read> {
  const { out } = shell
  const since = flags.since === undefined ? undefined : parseInstant('--since', flags.since, Date.now())
  if (flags.repo !== undefined) parseRepo(flags.repo, ANY_OWNER)
  await using profile = await openUserProfile(shell, flags, { problems: flags.dryRun ? 'warn' : 'fail' })
  const named = flags.repo === undefined ? undefined : parseRepo(flags.repo, profile.host)
  requireLog(profile.host)
  if (!profile.instance && !flags.dryRun) throw notServed(profile, ' --catch-up')
  const sources = await findSources(shell, profile, named)
  let lost = 0
  const problems: RelayError[] = []
  for (const source of sources)
    try {
      lost += yield* readLog(shell, profile, source, { since, dryRun: flags.dryRun === true })
    } catch (error) {
      if (sources.length === 1 || !(error instanceof RelayError) || !OF_ONE_LOG.has(error.kind)) throw error
      const about = `Could not catch up with ${source.name}: ${error.message}`
      problems.push(new RelayError(error.kind, about, { cause: error }))
    }
  const [problem, ...others] = problems
  for (const { message } of others) out.log.warn(message)
  if (problem) throw problem
  if (lost > 0)
    throw new RelayError('provider_failed', `${lost} could not be had. ${askAgain(profile.command)}`)
}

/**
 * Failures of one log, which do not prevent reading the others: its repository, its hook or the rights there are the
 * reason.
 */
const OF_ONE_LOG: ReadonlySet<ErrorKind> = new Set([
  'no_match',
  'not_found',
  'forbidden',
  'gone',
  'unprocessable',
])

/**
 * Catches up once no other process does, or lists the missing deliveries. Returns the number of those that could not be
 * had.
 */
async function* readLog(
  { out, signal }: Shell,
  { database, journal, limits, host }: UserProfile,
  { name, object, open, explain }: Source,
  { since, dryRun }: { readonly since: number | undefined; readonly dryRun: boolean },
): AsyncGenerator<Read, number> {
  const onWait = (why: string, ms: number): void => out.say(`Continues in ${Math.ceil(ms / 1000)} s: ${why}`)
  const options = {
    log: await open({ signal, onWait }),
    name,
    host,
    journal: await journal(),
    store: database.store,
    since,
    signal,
    limits,
    onBusy: (text: string) => out.say(text),
    onProgress(done: number, missing: number) {
      if (done > 0) out.count(`${done}/${missing}`)
      else if (missing > 0) out.say(`${name}: ${missing} missing${paceOf(host, missing)}`)
    },
    onWait,
    onWoken: () => out.say(`hook of ${name}: ${wokenText(host)}`),
  }
  try {
    if (dryRun) {
      const { deliveries } = await findMissed(options)
      yield { name, object, missing: deliveries }
      out.say(`would ask for ${deliveries.length} of ${name}`)
      return 0
    }
    const result = await catchUp(options)
    yield { name, object, result }
    return result.failed.length
  } catch (error) {
    throw explain(error)
  } finally {
    out.count()
  }
}

function paceOf({ resendsPerMinute: most, words }: CodeHost, missing: number): string {
  if (most === undefined || missing <= most) return ''
  return `. ${words.label} sends at most ${most} a minute again for a repository and user, so this takes about ${Math.ceil(missing / most)} minutes`
}

function printRead(read: Read, out: Output): void {
  if (read.missing)
    return out.table(read.missing.map((one) => [localTime(one.deliveredAt), eventName(one), one.guid]))
  for (const one of read.result.failed) out.log.warn(failedText(one))
  out.result(caughtUpText(read.name, read.result))
}

function json({ object, ...read }: Read) {
  if (read.missing) return read.missing.map((one) => ({ type: 'missing', ...object, ...missedObject(one) }))
  const { missing, arrived, failed } = read.result
  return { type: 'caught-up', ...object, missing, arrived, failed: failed.map(failedObject) }
}

// The logs

/** A log to catch up from: that of the App, or of a repository's hook. */
interface Source {
  readonly name: string
  readonly object: { readonly app: string } | { readonly repo: string }
  /** Finds its hook, and waits if the code host asks for that. @throws RelayError `no_match` if no hook leads here */
  readonly open: (patience: RetryOptions) => Promise<DeliveryLog>
  readonly explain: (error: unknown) => unknown
}

/**
 * Finds the logs to catch up from: that of the named repository, otherwise those of the App and of all hooks that the
 * profile made.
 */
async function findSources(
  shell: Shell,
  profile: UserProfile,
  named: Repo | undefined,
): Promise<readonly Source[]> {
  const { database, host } = profile
  const app = await findOwnApp(database.secrets, host, {
    signal: shell.signal,
    command: profile.command,
  })
  const repos = named ? [named] : await new SavedHooks(database.store, host).list()
  const ofRepos = repos.map((repo) => ofRepo(shell, profile, repo, app))
  const sources = app && !named ? [ofApp(profile, app), ...ofRepos] : ofRepos
  if (sources.length > 0) return sources
  throw new RelayError(
    'no_match',
    `This profile has made no hooks, and no App of its own sends here. Name the repository, or make a hook with ${profile.command('hook add <owner/repo>')}`,
  )
}

function ofApp(profile: UserProfile, app: OwnApp): Source {
  const { slug } = app
  return {
    name: `the App ${slug}`,
    object: { app: slug },
    async open(patience) {
      const here = payloadAddress(profile)
      const { url } = await withRetries(() => app.hook(), patience)
      if (here === undefined || sameAddress(url, here)) return app.log
      throw new RelayError(
        'no_match',
        `The webhook of the App ${slug} leads to ${url}, and this relay receives at ${here}. ${startCommand(profile)} changes the webhook when it starts`,
      )
    },
    explain: explainFailure,
  }
}

const PASSING: ReadonlySet<ErrorKind> = new Set(['rate_limited', 'provider_failed', 'provider_timeout'])

function explainFailure(error: unknown): unknown {
  if (!(error instanceof RelayError) || !PASSING.has(error.kind)) return error
  const { kind, message, retryAfter } = error
  const when = retryAfter === undefined ? 'later' : `in ${retryAfter} s`
  return new RelayError(kind, `${message}. Try again ${when}`, { retryAfter, cause: error })
}

function ofRepo(shell: Shell, profile: UserProfile, repo: Repo, app: OwnApp | undefined): Source {
  const name = formatRepo(repo)
  const place = placeOf(shell, profile, repo)
  return {
    name,
    object: { repo: name },
    async open(patience) {
      const list: RepoHooks['list'] = (of) => withRetries(() => place.hooks.list(of), patience)
      try {
        const { id } = await findOwnHook(profile, { ...place, hooks: { ...place.hooks, list } })
        const log = place.hooks.log?.(repo, id)
        if (log) return log
        throw new Error('unreachable: a host without a log is refused before')
      } catch (error) {
        const isNone = error instanceof RelayError && error.kind === 'no_match'
        if (!isNone || !(await app?.isInstalledOn(repo))) throw error
        throw new RelayError(
          'no_match',
          `The deliveries of ${name} come through the App ${app?.slug}. ${profile.command('catch-up')} without a repository reads its log`,
        )
      }
    },
    explain: (error) => explainLogError(error, place),
  }
}
