// Ends at once, with exit code 7, while the database's thread opens it or reads a large result.
import { atExit } from '../../../src/base/at-exit.js'
import { openInThread } from '../../../src/store/in-thread.js'

process.on('exit', () => {
  for (const act of atExit) act()
})

const ROWS = 300_000

const [, , file = '', when = 'opening'] = process.argv
const opening = openInThread(file)
if (when === 'reading') {
  const sql = await opening
  void sql.query(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS}) SELECT i FROM n`,
  )
}
// Long enough for the thread to begin, and shorter than the query takes.
setTimeout(() => process.exit(7), 50)
