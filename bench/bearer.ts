import path from 'node:path'
import { createProvider } from '../src/providers/open.js'
import { openDatabase } from '../src/store/open.js'
import { createTokens } from '../src/tokens/tokens.js'
import type { Benchmark } from './rig/benchmark.js'
import { type Folder, temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { SECRET } from './rig/push.js'
import { compare } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import { drive } from './rig/wrk.js'

const FEW = 100
const MANY = { usual: 100_000, full: 1_000_000 }
const ROUNDS = 9
const SECONDS = 2
/** They share a flush. */
const BATCH = 2_000
const PROVIDER_URL = 'https://github.com'
const DAY_MS = 86_400_000

export const bearer: Benchmark = {
  about: `Action requests, each with the bearer token of a random user, over 32 connections, with
${thousands(MANY.full)} users, ${thousands(MANY.usual)} without --full, compared with ${thousands(FEW)}. Their bodies are not JSON, so that they end right after the
look-up, with 415. ${ROUNDS} rounds of ${SECONDS} s.`,
  needs: ['wrk'],
  async run({ full }) {
    const count = full ? MANY.full : MANY.usual
    using few = await signedIn(FEW)
    using many = await signedIn(count)
    await using atFew = await startRelay(env(few))
    await using atMany = await startRelay(env(many))
    const rates = await inTurn(ROUNDS, {
      relay: () => lookUps(atMany, count),
      other: () => lookUps(atFew, FEW),
    })
    const what = `look-ups, ${thousands(count)} users`
    return [compare({ ...rates, what, baseline: `${thousands(FEW)} users`, unit: '/s' })]
  },
}

function env(home: Folder): Record<string, string> {
  const provider = { RELAY_PROVIDER: 'github', RELAY_PROVIDER_URL: PROVIDER_URL }
  return { ...provider, RELAY_WEBHOOK_SECRET: SECRET, RELAY_HOME: home.path }
}

/** A data folder with `count` signed-in users, whose tokens are `token-1` and so on. */
async function signedIn(count: number): Promise<Folder> {
  const home = temporaryFolder()
  await using database = await openDatabase({ kind: 'file', folder: path.join(home.path, 'default') })
  const tokens = createTokens(database.store)
  const { origin } = createProvider({ name: 'github', url: PROVIDER_URL })
  const expiresAt = Date.now() + DAY_MS
  for (let n = 1; n <= count; n += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, count - n + 1) }, (_, i) =>
      tokens.save(`user-${n + i}`, { accessToken: `token-${n + i}`, expiresAt, origin }),
    )
    await Promise.all(batch)
  }
  return home
}

/** A second. */
async function lookUps({ url }: Server, users: number): Promise<number> {
  const head = `POST /api/comment HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer token-`
  const tail = '\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n'
  await requireStatus(url, 'token-1', 415)
  await requireStatus(url, 'token-0', 401)
  const { perSecond } = await drive({ url, request: [head, tail], seconds: SECONDS, upTo: users })
  return perSecond
}

async function requireStatus(url: string, token: string, wanted: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/plain' }
  const { status } = await fetch(`${url}/api/comment`, { method: 'POST', headers })
  if (status !== wanted) throw new Error(`${url} answered ${status} instead of ${wanted}`)
}
