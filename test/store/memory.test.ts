import { describe } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { describeStore, type Open } from './contract.js'
import { describeLaw } from './law.js'
import { describeTables } from './tables.js'

const open: Open = (clock) => openDatabase({ kind: 'memory', folder: '', clock })

describe('the memory store', () => {
  describeStore(open)
  describeTables(open)
  describeLaw(open)
})
