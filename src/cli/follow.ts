import { onAbort, sleep } from '../base/wait.js'
import { followInstance, unreachableError } from '../instance/running.js'
import type { Shell } from './command.js'
import { callInstance } from './instance-client.js'
import type { Profile } from './profile.js'

/**
 * Interval of reading the data while no instance runs that announces changes: short enough for a person and a script.
 * Milliseconds.
 */
const POLL_MS = 100

/** A moment at which a following command reads its data again. */
export interface Wakeup {
  /** Reads the status of the instance, if that may have changed since the last wakeup. */
  readonly status?: (() => ReturnType<typeof callInstance<'status'>>) | undefined
}

/** Longest timer. With more than 2^31-1 ms it would end at once. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Yields when a command should read its data again: at once, with each change that the profile's instance announces,
 * and at each heartbeat, since a time may have passed; while no instance runs, every {@link POLL_MS}. It continues when
 * an instance stops or starts, with a wakeup after each, so that no change is missed. Warns if an instance stops
 * responding.
 * @param limit milliseconds after which it ends, with one more wakeup. Default: never
 * @throws AbortError, as `sleep`, when the signal of the shell aborts
 */
export async function* wakeups(
  shell: Shell,
  profile: Profile,
  { limit = Infinity }: { readonly limit?: number } = {},
): AsyncGenerator<Wakeup, void> {
  const { signal: stop } = shell
  const end = performance.now() + limit
  const remaining = (): number => Math.min(end - performance.now(), MAX_TIMER_MS)
  /** Process ids of instances that do not respond, and were reported. */
  const silent = new Set<number>(profile.unreachable ? [profile.unreachable.record.pid] : [])
  yield {}
  while (remaining() > 0) {
    using ending = limitedBy(stop, remaining())
    const { signal } = ending
    const opening = open(shell, profile, silent, { signal })
    // An open stream misses nothing. Until it is open, which takes long if an instance does not respond, the data is
    // read. Not once the signal has aborted: a pause then takes no time, and nothing else would ever run.
    for (;;) {
      const first = await Promise.race([opening, pause(signal)])
      if (first !== 'passed' || signal.aborted) break
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
    // Also after a stream: that of an instance could end at once each time.
    await pause(signal)
    yield {}
  }
}

/** Resolves after {@link POLL_MS}, or once the signal aborts. */
async function pause(signal: AbortSignal): Promise<'passed'> {
  await sleep(POLL_MS, { signal }).catch(() => {})
  return 'passed'
}

/** Opens the stream of the running instance. Undefined if none runs or it does not respond, which is reported once. */
async function open(
  { out }: Shell,
  { values: { home }, name: profile }: Profile,
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

/** Makes a signal that aborts with another, after `ms` milliseconds, or when it is disposed of. */
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
