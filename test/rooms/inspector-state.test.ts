import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Routing } from '../../src/dispatch/routing.js'
import type { InspectorParts } from '../../src/inspector/parts.js'
import { createStateReader } from '../../src/inspector/state.js'

const ADA = { userId: 'ada', expiresAt: 9, origin: 'https://github.com' }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const TARGET = { id: 'push=http://a:b@localhost:3000/hook', label: '', state: 'elsewhere', queued: 0 }
const COUNTS = { waiting: 2, succeeded: 5, failed: 1 }

/** The state of an instance whose keychain answers so, and the warnings. */
async function stateWith(owners: () => Promise<readonly object[]>) {
  const warnings: string[] = []
  const status = { targets: [TARGET], tunnels: [], hookProblems: new Map(), startedAt: 1 }
  const parts = {
    place: { profile: 'default', sandbox: false, isNamed: false },
    url: 'http://127.0.0.1:8787',
    host: { name: 'github', origin: 'https://github.com' },
    sources: new Map(),
    routing: new Routing({ forward: [TARGET.id], exec: [], ignore: [] }),
    instance: { activity: () => status },
    journal: { counts: async () => new Map([[TARGET.id, COUNTS]]), count: async () => 8 },
    store: { list: async () => [], get: async () => undefined },
    tokens: { owners },
    log: { warn: (text: string) => void warnings.push(text) },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only what the reader uses
  const state = createStateReader(parts as unknown as InspectorParts)()
  await vi.advanceTimersByTimeAsync(2000)
  return { state: await state, warnings }
}

it.each<[string, () => Promise<readonly object[]>, users: object[] | null, warnings: number]>([
  ['no user where the keychain is locked', () => Promise.reject(new Error('locked')), null, 1],
  ['no user after 2 seconds where the keychain asks its user', () => new Promise(() => {}), null, 1],
  ['who is signed in, without the token', async () => [{ ...ADA, accessToken: 'secret' }], [ADA], 0],
])('shows %s, and the rest', async (_, owners, users, count) => {
  const { state, warnings } = await stateWith(owners)
  // Also where another relay of the profile forwards, whose queues this one does not have.
  const label = 'http://***@localhost:3000/hook'
  const target = { match: 'push', state: 'elsewhere', waiting: 2, failed: 1, label }
  expect(state).toMatchObject({ deliveries: 8, targets: [target] })
  expect(state.users).toEqual(users)
  const warning = expect.stringContaining('the inspector cannot list who is signed in')
  expect(warnings).toEqual(Array.from({ length: count }, () => warning))
})
