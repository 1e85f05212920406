// Keeps what V8 has compiled of relay's files for the next start. See docs/decisions/014.
import { statSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import path from 'node:path'
import { constants, Script } from 'node:vm'
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
 * Fails at nothing: without a folder that is the user's own, everything is compiled anew.
 */
export function keepCompiled(program: string, folder: string): void {
  // As Node's own does.
  if (process.env['NODE_DISABLE_COMPILE_CACHE']) return
  if ('enableCompileCache' in Module && typeof Module.enableCompileCache === 'function') {
    // Node itself looks at no owner.
    if (makeOwn(folder)) Module.enableCompileCache(folder)
  } else keepOurselves(program, folder)
}

function keepOurselves(program: string, folder: string): void {
  const kept = openKept(folder)
  const anew = new Map<string, Script>()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see Loader
  const loader = Module.prototype as unknown as Loader
  const compile = loader._compile
  loader._compile = function (content, filename, ...rest) {
    const name = path.dirname(filename) === program && !content.includes(IMPORT) && nameOf(filename)
    if (!name) return compile.call(this, content, filename, ...rest)
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
 * Tells the file from any other, and from what it was before it was changed or moved: V8 itself looks at no more than the
 * source's length, and stack traces tell the path as it was. By the times that the system keeps, since to load a checksum takes
 * longer than all else that is done here. Undefined for a file that was changed since the process began: it may have been
 * read before.
 */
function nameOf(filename: string): string | undefined {
  const { ino, size, mtimeMs, ctimeMs } = statSync(filename)
  if (ctimeMs >= Date.now() - process.uptime() * 1000) return undefined
  const sum = hash([filename, ino, size, mtimeMs, ctimeMs].join())
  return `${process.version}-${process.arch}-${sum}-${path.basename(filename)}`
}

/** FNV-1a: short, for a text that is short. */
function hash(text: string): string {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
  return (sum >>> 0).toString(16).padStart(8, '0')
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
