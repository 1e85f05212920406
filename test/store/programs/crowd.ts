// Opens a database many times at once and reads from it, as many commands do that only look. Says how the opens ended.
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from './talk.js'

const [, , folder = '', count = '0'] = process.argv

say('ready')
await heard()
const ends = await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    try {
      await using database = await openDatabase({ kind: 'file', folder })
      return `newest ${await openJournal(database.sql).newest()}`
    } catch (error) {
      return String(error)
    }
  }),
)
say([...new Set(ends)])
process.stdin.destroy()
