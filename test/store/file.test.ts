import { describe } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { describeStore, type Open } from './contract.js'
import { describeLaw } from './law.js'
import { describeTables } from './tables.js'

const open: Open = (clock) => openDatabase({ kind: 'file', folder: emptyFolder(), clock })

describe('the file store', () => {
  describeStore(open)
  describeTables(open)
  describeLaw(open)
})
