import { OwnApp } from '../../../auth/setup.js'
import { type ErrorKind, RelayError } from '../../../base/errors.js'
import { patiently, type PatienceOptions } from '../../../codehost/catch-up.js'
import { explainHookError, sameAddress, SavedHooks } from '../../../codehost/hooks.js'
import type { DeliveryLog, Hooks, Repo } from '../../../codehost/host.js'
import { formatRepo } from '../../session/repo.js'
import type { Session } from '../../session/session.js'
import { startCommand } from '../../session/start-command.js'
import { findOwnHook, payloadAddress, placeOf } from '../hook/hook-session.js'

/** What is caught up from: the log of the App, or of a repository's hook. */
export interface Source {
  /** For people. */
  readonly name: string
  /** For programs. */
  readonly object: { readonly app: string } | { readonly repo: string }
  /** Finds its hook, and waits where the code host asks for it. @throws RelayError `no_match` when it does not lead here */
  open(patience: PatienceOptions): Promise<DeliveryLog>
  /** The error of a call, with the next step. */
  explain(error: unknown): unknown
}

/**
 * The logs to catch up from: that of the named repository, otherwise those of the App and of all hooks that the profile made.
 * @throws RelayError `no_match` if there is none
 */
export async function findSources(
  session: Session,
  named: Repo | undefined,
  signal: AbortSignal,
): Promise<readonly Source[]> {
  const { store, secrets, host } = session
  const app = await OwnApp.find(secrets, host, { signal })
  if (named) return [ofRepo(session, named, app, signal)]
  const repos = await new SavedHooks(store, host).list()
  const sources = [
    ...(app ? [ofApp(session, app)] : []),
    ...repos.map((repo) => ofRepo(session, repo, app, signal)),
  ]
  if (sources.length > 0) return sources
  throw new RelayError(
    'no_match',
    'This profile has made no hooks, and no App of its own sends here. Name the repository, or make a hook with relay hook add',
  )
}

function ofApp(session: Session, app: OwnApp): Source {
  const { slug } = app
  return {
    name: `the App ${slug}`,
    object: { app: slug },
    async open(patience) {
      const here = await payloadAddress(session, {})
      const { url } = await patiently(() => app.hook(), patience)
      if (here === undefined || sameAddress(url, here)) return app.log
      throw new RelayError(
        'no_match',
        `The webhook of the App ${slug} leads to ${url}, and this relay receives at ${here}. ${startCommand(session.settings)} changes the webhook when it starts`,
      )
    },
    explain: explainFailure,
  }
}

/** With the next step. */
function explainFailure(error: unknown): unknown {
  if (!(error instanceof RelayError) || !PASSING.has(error.kind)) return error
  const { kind, message, retryAfter } = error
  const when = retryAfter === undefined ? 'later' : `in ${retryAfter} s`
  return new RelayError(kind, `${message}. Try again ${when}`, { retryAfter, cause: error })
}

const PASSING: ReadonlySet<ErrorKind> = new Set(['rate_limited', 'provider_failed', 'provider_timeout'])

function ofRepo(session: Session, repo: Repo, app: OwnApp | undefined, signal: AbortSignal): Source {
  const name = formatRepo(repo)
  const place = placeOf(session, repo, signal)
  return {
    name,
    object: { repo: name },
    async open(patience) {
      const list: Hooks['list'] = (of) => patiently(() => place.hooks.list(of), patience)
      try {
        const { id } = await findOwnHook(session, { ...place, hooks: { list } })
        const log = place.hooks.log?.(repo, id)
        if (log) return log
        throw new Error('unreachable: a host without a log is refused before')
      } catch (error) {
        const isNone = error instanceof RelayError && error.kind === 'no_match'
        if (!isNone || !(await app?.isInstalledOn(repo))) throw error
        throw new RelayError(
          'no_match',
          `The deliveries of ${name} come through the App ${app?.slug}. relay catch-up without a repository reads its log`,
        )
      }
    },
    explain: (error) => explainHookError(error, place),
  }
}
