import { type Log, silentLog } from './log.js'

/**
 * Wraps the callbacks of an embedding program so that their failures are harmless: an exception or a rejected promise
 * is logged and goes no further. Every function whose name begins with `on` is a callback. A log that fails loses the
 * line.
 */
export function isolateCallbacks<Options extends object>(options: Options & { readonly log?: Log }): Options {
  const { log: given = silentLog } = options
  const log: Log = {
    debug: quiet((text) => given.debug(text)),
    info: quiet((text) => given.info(text)),
    warn: quiet((text) => given.warn(text)),
    error: quiet((text, cause) => given.error(text, cause)),
  }
  const callbacks = namesIn(options).flatMap((name) => {
    const callback: unknown = Reflect.get(options, name)
    if (typeof callback !== 'function') return []
    // The error's own text is left out, since it can be anything.
    const onFailure = (cause: unknown): void =>
      log.error(`the callback ${name} failed; relay continues`, cause)
    return [[name, guarded((...args) => Reflect.apply(callback, options, args), onFailure)] as const]
  })
  return { ...options, log, ...Object.fromEntries(callbacks) }
}

/** Awaits a promise, or a thenable of another library. */
async function settle(result: unknown): Promise<void> {
  await result
}

/** Names of an object's callbacks, including the methods of its class. */
function namesIn(options: object): string[] {
  const names = new Set<string>()
  for (let at: object | null = options; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) if (/^on[A-Z]/.test(name)) names.add(name)
  return [...names]
}

function quiet<Args extends readonly unknown[]>(write: (...args: Args) => unknown): (...args: Args) => void {
  return guarded(write, () => {})
}

function guarded<Args extends readonly unknown[]>(
  callback: (...args: Args) => unknown,
  onFailure: (cause: unknown) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      const result = callback(...args)
      if (result !== undefined) settle(result).catch(onFailure)
    } catch (error) {
      onFailure(error)
    }
  }
}
