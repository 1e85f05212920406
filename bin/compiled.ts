// Keeps what V8 has compiled of relay's files for the next start. See docs/decisions/014.
import { createRequire, Module } from 'node:module'
import path from 'node:path'
import { constants, Script } from 'node:vm'
// By the default: as a name of its own it could not be imported where it is missing.
import zlib from 'node:zlib'
import { makeOwn, openKept } from './kept.js'

/** Long after a short command's end, and long before V8 forgets what a service runs only when it starts. */
const SOON_MS = 2000

/** What Node 20 cannot do in code that was not compiled in the same process. */
const IMPORT = 'import('

/** What Node calls with the text of each CommonJS file; its types leave it out. */
interface Loader {
  _compile: (this: Module, content: string, filename: string, ...rest: readonly unknown[]) => unknown
}

/**
 * From here on the CommonJS files in `program` are run from what was compiled of them at an earlier start, as far as `folder`
 * has it; what it has not is written there when the program has run. Where Node can do that itself, from 22.8 on, it does.
 * Fails at nothing: without a folder that is the user's own, and in Node 21 to 22.1, everything is compiled anew.
 */
export function keepCompiled(program: string, folder: string): void {
  // As Node's own does.
  if (process.env['NODE_DISABLE_COMPILE_CACHE']) return
  if ('enableCompileCache' in Module && typeof Module.enableCompileCache === 'function') {
    // Node itself looks at no owner.
    if (makeOwn(folder)) Module.enableCompileCache(folder)
    return
  }
  // It is there from 20.15 and 22.2 on.
  if (typeof zlib.crc32 === 'function') keepOurselves(program, folder)
}

function keepOurselves(program: string, folder: string): void {
  const kept = openKept(folder)
  const anew = new Map<string, Script>()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see Loader
  const loader = Module.prototype as unknown as Loader
  const compile = loader._compile
  loader._compile = function (content, filename, ...rest) {
    if (path.dirname(filename) !== program || content.includes(IMPORT))
      return compile.call(this, content, filename, ...rest)
    const name = nameOf(content, filename)
    const script = scriptOf(content, filename, kept.read(name))
    if (script.cachedDataRejected !== false) anew.set(name, script)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what Module.wrap makes is one
    const run = script.runInThisContext() as (this: unknown, ...names: unknown[]) => unknown
    const require = createRequire(filename)
    return run.call(this.exports, this.exports, require, this, filename, path.dirname(filename))
  }
  const keep = (): void => {
    kept.write(anew, (script) => script.createCachedData())
    anew.clear()
  }
  setTimeout(keep, SOON_MS).unref()
  process.once('exit', keep)
}

/**
 * V8 itself looks at its version, its flags and the length of the source, and at nothing more; and stack traces tell of the
 * file as it was named when it was compiled.
 */
function nameOf(content: string, filename: string): string {
  const sum = zlib.crc32(content, zlib.crc32(filename)).toString(16).padStart(8, '0')
  return `${process.version}-${process.arch}-${sum}-${path.basename(filename)}`
}

function scriptOf(content: string, filename: string, cachedData: Buffer | undefined): Script {
  return new Script(Module.wrap(content), {
    filename,
    // Node does the same to a file; stack traces tell columns of the file.
    columnOffset: -Module.wrap('').indexOf('\n'),
    ...(cachedData && { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
}
