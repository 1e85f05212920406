// Writes to standard output what it is told to: so many lines, then that it could not, on the channel of file descriptor 3.
import { writeSync } from 'node:fs'
import { openStdio } from '../../../bin/stdio.js'

const [lines = '1'] = process.argv.slice(2)
const output = openStdio(1, () => writeSync(3, 'failed\n'))
for (let n = 0; n < Number(lines); n++) output.write(`${String(n).padStart(9)}\n`)
writeSync(3, `terminal: ${String(output.isTTY)}\n`)
