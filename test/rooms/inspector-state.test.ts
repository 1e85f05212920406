import { afterEach, expect, it, vi } from 'vitest'
import { createRouting } from '../../src/dispatch/routes.js'
import type { InspectorParts } from '../../src/inspector/parts.js'
import { createStateReader } from '../../src/inspector/state.js'

afterEach(() => vi.useRealTimers())

/** The state of an instance whose keychain answers so. */
function stateWith(owners: () => Promise<readonly object[]>) {
  const warnings: string[] = []
  const target = { id: 'push=http://a:b@localhost:3000/hook', label: '', state: 'elsewhere', queued: 0 }
  const parts = {
    profile: 'default',
    url: () => 'http://127.0.0.1:8787',
    host: { name: 'github', origin: 'https://github.com' },
    routing: createRouting({ forward: [target.id], exec: [], ignore: [] }),
    running: {
      startedAt: () => 1,
      targets: () => [target],
      tunnel: () => undefined,
      hookProblems: () => new Map(),
    },
    journal: {
      counts: async () => new Map([[target.id, { waiting: 2, succeeded: 5, failed: 1 }]]),
      count: async () => 8,
    },
    store: { list: async () => [], get: async () => undefined },
    tokens: { owners },
    log: { warn: (text: string) => void warnings.push(text) },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only what the reader uses
  return { warnings, read: createStateReader(parts as unknown as InspectorParts) }
}

const rest = {
  deliveries: 8,
  // Also where another relay of the profile forwards, whose queues this one does not have.
  targets: [
    { match: 'push', state: 'elsewhere', waiting: 2, failed: 1, label: 'http://***@localhost:3000/hook' },
  ],
}

it('shows the rest where the keychain is locked', async () => {
  const { read, warnings } = stateWith(() => Promise.reject(new Error('locked')))
  expect(await read()).toMatchObject({ ...rest, users: null })
  expect(warnings).toEqual([expect.stringContaining('the inspector cannot list who is signed in')])
})

it('shows the rest after 2 seconds where the keychain asks its user', async () => {
  vi.useFakeTimers()
  const { read } = stateWith(() => new Promise(() => {}))
  const state = read()
  await vi.advanceTimersByTimeAsync(2000)
  expect(await state).toMatchObject({ ...rest, users: null })
})

it('shows who is signed in, without the token', async () => {
  const owner = { userId: 'ada', expiresAt: 9, origin: 'https://github.com', accessToken: 'secret' }
  const { read } = stateWith(async () => [owner])
  const state = await read()
  expect(state.users).toEqual([{ userId: 'ada', expiresAt: 9, origin: 'https://github.com' }])
})
