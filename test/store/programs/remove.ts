// Deletes one record.
import { openDatabase } from '../../../src/store/open.js'

const [, , folder = '', key = ''] = process.argv
await using database = await openDatabase({ kind: 'file', folder })
await database.store.delete(key)
