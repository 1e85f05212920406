import { describe } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { describeStore, type Open } from './contract.js'
import { KINDS, optionsOf } from './kinds.js'
import { describeLaw } from './law.js'

describe.each(KINDS)('the store in a database: %s', (kind) => {
  const open: Open = (clock) => openDatabase({ ...optionsOf(kind, emptyFolder()), clock })
  describeStore(open)
  // A thread takes its time to start.
  describeLaw(open, kind === 'thread' ? 20 : 100)
})
