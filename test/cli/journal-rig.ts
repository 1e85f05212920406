import path from 'node:path'
import { RelayError } from '../../src/base/errors.js'
import type { Delivery } from '../../src/journal/types.js'
import type { Attempt, Forward } from '../../src/journal/types.js'
import type { Journal } from '../../src/journal/journal.js'
import { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { attempt, delivery, NOW } from '../journal/rig.js'
import { start } from '../store/programs/start.js'
import { type Ran, shell, type Shell } from './rig.js'

export const URL_TARGET = '*=http://localhost:3000/hook'
const EXEC_TARGET = 'push=exec:./deploy.sh'
/** Contains secrets that are never shown. */
const SECRET_TARGET = 'issues=https://u:password-canary@example.com/x?token=query-canary'

const MINUTE = 60_000

/** Fills the journal of the shell's profile, and closes it. */
export async function fill(
  { home }: Pick<Shell, 'home'>,
  write: (journal: Journal) => Promise<void>,
  targets: readonly string[] = [],
  profile = 'default',
): Promise<void> {
  await using database = await openDatabase({ kind: 'file', folder: path.join(home, profile) })
  await write(new Journal(database.sql, { targetsOf: () => targets }))
}

/** A pull request's delivery, as its sender wrote it: with a number that no program keeps. */
export function opened(id: string, more: Partial<Delivery> = {}): Delivery {
  const body =
    '{"action":"opened","big":12345678901234567890,"labels":[],"repository":{"full_name":"octo/demo"}}'
  return delivery(id, {
    event: 'pull_request',
    action: 'opened',
    headers: [
      ['Content-Type', 'application/json'],
      ['X-GitHub-Event', 'pull_request'],
    ],
    body: Buffer.from(body),
    ...more,
  })
}

/** Five entries: not forwarded, succeeded with duplicates, failed, waiting, and one with three targets. */
export async function exampleShell(): Promise<Shell> {
  const here = shell()
  await fill(here, async (journal) => void (await journal.append(opened('a'))))
  await fill(here, withOneTarget, [URL_TARGET])
  await fill(here, withThreeTargets, [URL_TARGET, EXEC_TARGET, SECRET_TARGET])
  return here
}

async function withOneTarget(journal: Journal): Promise<void> {
  await journal.append(delivery('b', { receivedAt: NOW + MINUTE, number: null }))
  await journal.record(2, attempt(URL_TARGET), { status: 'succeeded', tries: 0, since: NOW })
  for (let i = 0; i < 2; i++) await journal.append(delivery('b'))
  await journal.flush()

  await journal.append(
    delivery('c', { receivedAt: NOW + 2 * MINUTE, event: 'issues', action: 'closed', number: 12 }),
  )
  const waits = { status: 'waiting', tries: 0, since: NOW } as const
  const down = {
    outcome: 'unreachable',
    status: null,
    error: 'connection refused',
  } as const
  for (let i = 0; i < 3; i++)
    await journal.record(
      3,
      attempt(URL_TARGET, { ...down, at: NOW + 2 * MINUTE - 2 + i, answer: Buffer.of() }),
      waits,
    )
  const refused = { at: NOW + 3 * MINUTE, outcome: 'refused', status: 404, ms: 12_345 } as const
  const answer = Buffer.from('no\u001b[2J such\r\nthing\n')
  await journal.record(3, attempt(URL_TARGET, { ...refused, answer }), {
    ...waits,
    status: 'failed',
    reason: 'answered 404',
  })

  await journal.append(delivery('d', { receivedAt: NOW + 3 * MINUTE, repo: null, number: null }))
}

async function withThreeTargets(journal: Journal): Promise<void> {
  await journal.append(
    delivery('e', {
      receivedAt: NOW + 4 * MINUTE,
      event: 'x\u001b[2J',
      repo: 'octo/other',
      verifiedBy: 'previous',
    }),
  )
  const failed = { status: 'failed', tries: 0, since: NOW, reason: 'exit code 1' } as const
  await journal.record(5, attempt(EXEC_TARGET, { outcome: 'refused', status: 1 }), failed)
}

/** Another process that writes to the shell's journal, as the instance does. */
export interface Appender extends AsyncDisposable {
  append(id: string, more?: Partial<Delivery> & { readonly payload?: unknown }): Promise<void>
  record(n: number, attempt: Attempt, forward: Forward): Promise<void>
}

export async function startAppender(
  { home }: Pick<Shell, 'home'>,
  targets: readonly string[] = [],
): Promise<Appender> {
  const program = start('cli/programs/append', [path.join(home, 'default'), ...targets])
  await program.line()
  const tell = async (what: object): Promise<void> => {
    program.tell(JSON.stringify(what))
    await program.line()
  }
  return {
    append: (id, more) => tell({ id, ...more }),
    record: (n, attempt, forward) =>
      tell({ n, attempt: { ...attempt, answer: [...attempt.answer] }, forward }),
    [Symbol.asyncDispose]: () => program.kill(),
  }
}

/** A running command. */
export interface Running {
  /** Waits until it has printed so many lines, and gives them all. */
  lines(count: number): Promise<string[]>
  /** What Ctrl-C does. */
  interrupt(): void
  readonly ended: Promise<Ran>
}

export function startCommand(shell: Shell, argv: readonly string[]): Running {
  const abort = new AbortController()
  let out = ''
  let wake = (): void => {}
  const stdout = {
    write(text: string | Uint8Array) {
      out += String(text)
      wake()
    },
  }
  return {
    async lines(count) {
      while (out.split('\n').length <= count) await new Promise<void>((resolve) => (wake = resolve))
      return out.split('\n').slice(0, -1)
    },
    interrupt: () => abort.abort(new RelayError('cancelled', 'Interrupted')),
    ended: shell.run(argv, { stdout, signal: abort.signal }).then((ran) => ({ ...ran, out })),
  }
}
