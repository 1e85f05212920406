import { describe } from 'vitest'
import { describeStore, type Open } from './contract.js'
import { KINDS, openKind } from './kinds.js'
import { describeLaw } from './law.js'

describe.each(KINDS)('the store in a database: %s', (kind) => {
  const open: Open = (clock) => openKind(kind, undefined, clock)
  describeStore(open)
  // The others take their time to open.
  describeLaw(open, kind === 'memory' ? 100 : 20)
})
