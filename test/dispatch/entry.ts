import type { Entry } from '../../src/journal/types.js'

/** An entry of the journal, as targets get it. */
export function entryOf(over: Partial<Entry> = {}): Entry {
  return {
    n: 1,
    receivedAt: 0,
    provider: 'github',
    event: 'issues',
    deliveryId: '72d3162e',
    hookId: '42',
    verifiedBy: 'current',
    action: 'opened',
    repo: 'octo/demo',
    number: 7,
    duplicates: 0,
    headers: [],
    body: Buffer.from('{"zen":"Keep it logically awesome."}'),
    ...over,
  }
}
