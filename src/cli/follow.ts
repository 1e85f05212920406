import { onAbort, sleep } from '../base/wait.js'
import { followInstance, unreachableError } from '../instance/running.js'
import type { Shell } from './command.js'
import { callInstance } from './instance-client.js'
import type { Attached } from './profile.js'

/** Where no instance runs that would say what changes, its data is read this often. Short enough for a person and a script. Milliseconds. */
export const POLL_MS = 100

/** A moment at which a command that follows reads again what it follows. */
export interface Wakeup {
  /** What the instance says of itself, where that may have changed since the last look. */
  readonly status?: (() => ReturnType<typeof callInstance<'status'>>) | undefined
}

/** A timer of more than 2^31-1 ms would end at once. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * The moments at which a command reads again: at once, and then with each change that the profile's instance announces, without a delay, and
 * at each heartbeat, since a clock may have passed;
 * while none runs, every {@link POLL_MS}. It goes on when the instance ends and when one is started, with a look after each, so that no
 * change falls between. Warns where an instance stops answering.
 * @param limit milliseconds after which it ends, with one more look. Default: never
 * @throws AbortError, as `sleep`, when the signal of the shell aborts
 */
export async function* wakeups(
  shell: Pick<Shell, 'out' | 'signal'>,
  attached: Pick<Attached, 'values' | 'profile' | 'unreachable'>,
  { limit = Infinity }: { readonly limit?: number } = {},
): AsyncGenerator<Wakeup, void> {
  const { signal: stop } = shell
  const end = performance.now() + limit
  const remaining = (): number => Math.min(end - performance.now(), MAX_TIMER_MS)
  /** Instances that do not answer, of which the user knows. */
  const silent = new Set<number>(attached.unreachable ? [attached.unreachable.record.pid] : [])
  yield {}
  while (remaining() > 0) {
    using ending = limitedBy(stop, remaining())
    const { signal } = ending
    const opening = open(shell, attached, silent, { signal })
    // Once the stream is open nothing is missed; until then, which is long where an instance does not answer, the data is read.
    for (;;) {
      const first = await Promise.race([opening, pause(signal)])
      if (first !== 'passed') break
      yield {}
    }
    const stream = await opening
    if (stream) {
      using _ = stream
      const { record } = stream
      const status = () => callInstance(record, 'status', {}, { signal })
      yield { status }
      for await (const topics of stream.lines) yield topics.includes('status') ? { status } : {}
    }
    stop.throwIfAborted()
    if (!stream) await pause(signal)
    yield {}
  }
}

/** The same in the process of the instance itself: every {@link POLL_MS}. @throws AbortError when the signal aborts */
export async function* pollWakeups(signal: AbortSignal, limit: number): AsyncGenerator<Wakeup, void> {
  for (const end = performance.now() + limit; performance.now() < end; await sleep(POLL_MS, { signal }))
    yield {}
}

/** Resolves after {@link POLL_MS}, or once the signal aborts. */
async function pause(signal: AbortSignal): Promise<'passed'> {
  await sleep(POLL_MS, { signal }).catch(() => {})
  return 'passed'
}

/** The stream of the instance that runs. Undefined where none does, or it does not answer: then it warns, once. */
async function open(
  { out }: Pick<Shell, 'out'>,
  { values: { home }, profile }: Pick<Attached, 'values' | 'profile'>,
  silent: Set<number>,
  { signal }: { readonly signal: AbortSignal },
) {
  const found = await followInstance(home, { profile, signal }).catch((error: unknown) => {
    if (signal.aborted) return undefined
    throw error
  })
  if (!found || !('why' in found)) return found
  const { pid } = found.record
  if (!silent.has(pid)) out.log.warn(unreachableError(found).message)
  silent.add(pid)
  return undefined
}

/** A signal that aborts with another or after `ms` milliseconds, and when it is disposed of. */
function limitedBy(stop: AbortSignal, ms: number): Disposable & { readonly signal: AbortSignal } {
  const limit = new AbortController()
  const end = (): void => limit.abort()
  const timer = setTimeout(end, ms)
  const ignore = onAbort(stop, end)
  return {
    signal: limit.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      ignore()
      end()
    },
  }
}
