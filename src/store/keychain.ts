import { RelayError } from '../base/errors.js'
import type { Found, Request, Value } from './keychain-helper.js'
import { type HelperProcess, type ProcessOptions, startHelper } from './keychain-process.js'

/**
 * The operating system's keychain, as texts under keys. Its calls can hang (a D-Bus that is stuck), so they are made in a
 * helper process, one at a time, which is killed when it does not answer within 3 s, and started again for the next call.
 *
 * Every method rejects with RelayError `storage`, saying what is wrong, what to do about it, and how to do without.
 */
export interface Keychain extends AsyncDisposable {
  get(key: string): Promise<string | undefined>
  set(key: string, text: string): Promise<void>
  delete(key: string): Promise<void>
  /** All entries, also those that were not made here. */
  find(): Promise<readonly Found[]>
}

export interface KeychainOptions extends ProcessOptions {
  /** What the entries are filed under. */
  readonly service: string
}

/** Calls that may wait for their turn: at a few milliseconds each, all of them have it within a second or two. */
const MAX_WAITING = 250

interface Call {
  readonly request: Request
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export function createKeychain({ service, ...options }: KeychainOptions): Keychain {
  const waiting: Call[] = []
  let helper: HelperProcess | undefined
  let working: Promise<void> | undefined
  let closed = false

  const ask = async (request: Request): Promise<Value> => {
    if (closed) throw new RelayError('storage', 'The store is closed')
    if (waiting.length >= MAX_WAITING) throw new RelayError('storage', 'The keychain is busy: try again')
    return new Promise<Value>((resolve, reject) => {
      waiting.push({ request, resolve, reject })
      working ??= work()
    })
  }

  async function work(): Promise<void> {
    for (let call = waiting.shift(); call; call = waiting.shift()) {
      try {
        if (!helper?.running) helper = await startHelper(options)
        call.resolve(await helper.ask(call.request))
      } catch (error) {
        call.reject(error)
        // Those behind would wait as long, one after the other.
        if (!helper?.running) for (const { reject } of waiting.splice(0)) reject(error)
      }
    }
    working = undefined
  }

  return {
    async get(key) {
      const value = await ask({ call: 'get', service, key })
      return typeof value === 'string' ? value : undefined
    },
    async set(key, text) {
      await ask({ call: 'set', service, key, text })
    },
    async delete(key) {
      await ask({ call: 'delete', service, key })
    },
    async find() {
      const value = await ask({ call: 'find', service })
      return typeof value === 'string' ? [] : (value ?? [])
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await working
      await helper?.kill()
    },
  }
}
