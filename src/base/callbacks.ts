import { type Log, silentLog } from './log.js'

/**
 * The options of a program that runs relay, with callbacks that can fail without harm: what one throws, or its promise rejects with, is
 * logged and goes no further. A callback is each function whose name begins with `on`. A log that fails loses the line.
 */
export function isolated<Options extends object>(options: Options & { readonly log?: Log }): Options {
  const { log: given = silentLog } = options
  const log: Log = {
    debug: quiet((text) => given.debug(text)),
    info: quiet((text) => given.info(text)),
    warn: quiet((text) => given.warn(text)),
    error: quiet((text, cause) => given.error(text, cause)),
  }
  const callbacks = Object.entries(options).flatMap(([name, callback]) => {
    if (!/^on[A-Z]/.test(name) || typeof callback !== 'function') return []
    // Without the error's own text, which can be anything.
    const onFailure = (cause: unknown): void =>
      log.error(`the callback ${name} failed; relay continues`, cause)
    return [[name, guarded((...args) => Reflect.apply(callback, options, args), onFailure)] as const]
  })
  return { ...options, log, ...Object.fromEntries(callbacks) }
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
      // Also of a promise that is not of Node's own class.
      if (result !== undefined) void Promise.resolve(result).catch(onFailure)
    } catch (error) {
      onFailure(error)
    }
  }
}
