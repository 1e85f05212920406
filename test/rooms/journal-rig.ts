import type { Delivery } from '../../src/journal/types.js'
import type { Attempt, Forward } from '../../src/journal/types.js'
import { type Database, openDatabase } from '../../src/store/open.js'

export const NOW = 1_700_000_000_000

export const open = (): Promise<Database> => openDatabase({ kind: 'memory', folder: '' })

export function delivery(deliveryId: string, more: Partial<Delivery> = {}): Delivery {
  return {
    receivedAt: NOW,
    provider: 'github',
    event: 'push',
    deliveryId,
    hookId: '42',
    headers: [
      ['X-GitHub-Event', 'push'],
      ['X-Twice', 'one'],
      ['x-twice', 'two \u00e9'],
    ],
    body: Uint8Array.from([0, 255, 13, 10, 0xef, 0xbb, 0xbf]),
    verifiedBy: 'current',
    action: null,
    repo: 'octo/demo',
    number: 7,
    ...more,
  }
}

export function attempt(target: string, more: Partial<Attempt> = {}): Attempt {
  return {
    at: NOW + 5,
    target,
    outcome: 'succeeded',
    status: 200,
    ms: 38,
    answer: Uint8Array.of(0xff, 10, 0, 123),
    error: null,
    count: 1,
    ...more,
  }
}

export const waiting: Forward = { status: 'waiting', tries: 0, since: NOW }
export const succeeded: Forward = { status: 'succeeded', tries: 0, since: NOW }
export const failed: Forward = { status: 'failed', tries: 5, since: NOW, reason: 'answered 500 five times' }
