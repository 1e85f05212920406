// Imported into a program under test: when it ends, writes the files of the packages that it has loaded to the file that LOADED names.
import { writeFileSync } from 'node:fs'
import Module from 'node:module'

process.on('exit', () => writeFileSync(process.env.LOADED, Object.keys(Module._cache).join('\n')))
