// Imported into a program under test: writes the files of the modules that it loads to the file that LOADED names.
import { appendFileSync } from 'node:fs'
import Module, { register } from 'node:module'

register('./loaded-hook.mjs', import.meta.url)
// What CommonJS modules load passes no hook.
process.on('exit', () => appendFileSync(process.env.LOADED, `${Object.keys(Module._cache).join('\n')}\n`))
