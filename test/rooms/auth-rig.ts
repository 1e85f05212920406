import { inspect } from 'node:util'
import { SignInLimiter } from '../../src/auth/starts.js'
import type { RenewParts } from '../../src/auth/renew.js'
import type { SignInParts } from '../../src/auth/sign-in.js'
import { RelayError } from '../../src/base/errors.js'
import { createLogThrottle } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { openHost } from '../../src/codehost/hosts.js'
import type { Json, Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { type Answer, type Asked, failure, servers } from './codehost-rig.js'
import { RecordingLog } from './recording-log.js'

export const NOW = Date.UTC(2030, 0, 1)
export const DAY = 86_400_000
export const WEB = 'https://git.example'
export const CLIENT = { id: 'the-client', secret: new Secret('the-client-secret') }

/** What a sign-in and a renewal work with, in memory and in made-up time. */
export async function createRig(answer: (asked: Asked) => Answer | Promise<Answer>) {
  const { sendOnce, asked } = servers(answer)
  const time = { now: NOW }
  const clock = (): number => time.now
  const database = await openDatabase({ kind: 'memory', folder: '', clock })
  /** Methods of the store that fail like a full disk. */
  const broken = new Set<keyof Store>()
  const store: Store = new Proxy(database.store, {
    get(target, name: keyof Store) {
      const method = target[name].bind(target)
      return broken.has(name) ? () => Promise.reject(new RelayError('storage', 'The store failed')) : method
    },
  })
  const log = new RecordingLog()
  const parts: SignInParts & RenewParts = {
    host: await openHost({ name: 'github', url: WEB, sendOnce }),
    client: CLIENT,
    store,
    redirectUri: () => 'http://127.0.0.1:8787/auth/github/callback',
    tokenTtl: 30 * DAY,
    clock,
    log,
    throttle: createLogThrottle(log),
    sendOnce,
    tokens: new Tokens(store, clock),
    onAccount: () => {},
    starts: new SignInLimiter(),
  }
  return {
    ...parts,
    asked,
    time,
    log,
    parts,
    broken,
    contents: () => contents(database.store),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** The whole store. */
export async function contents(store: Store): Promise<Record<string, Json | undefined>> {
  const keys = await store.list('')
  return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await store.get(key)] as const)))
}

/** All that somebody could print of what a call throws. */
export async function shown(call: Promise<unknown>): Promise<string> {
  return inspect(await failure(call), { depth: 10, showHidden: true })
}
