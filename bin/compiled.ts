// Keeps what V8 has compiled of relay's files for the next start. See docs/decisions/014.
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { constants, Script } from 'node:vm'
import { openKept, type Kept } from './kept.js'

/** Long after a short command's end, and long before V8 forgets what a service runs only when it starts. */
const SOON_MS = 2000

/** What Node 20 cannot do in code that was compiled at an earlier start, and warns of in what others than itself compile. */
const IMPORT = 'import('

/** What Node puts around a CommonJS file. */
const WRAPPER = ['(function (exports, require, module, __filename, __dirname) { ', '\n})'] as const

type Run = (this: unknown, ...names: readonly unknown[]) => unknown

/** This file, as others of its folder name it: Node has loaded it. */
const OWN = `./${path.basename(import.meta.filename)}`

export type Require = (id: string) => unknown

/** What a file is given as `module`. */
interface File {
  readonly exports: unknown
}

/**
 * Gives what loads the CommonJS files of `program`, named `./file.js`, once each, and runs them from what was compiled of them at
 * an earlier start, as far as `folder` has it; what it has not is written there when the program has run. `require` is Node's, of
 * a file in `program`, for whatever else they ask for, and for a file that imports, which should require no other. Without a
 * folder that is the user's own, everything is compiled anew.
 */
export function keepCompiled(program: string, folder: string, require: Require): Require {
  const kept = openKept(folder)
  const anew = new Map<string, Script>()
  const files = new Map<string, File>()
  keepLater(kept, anew)
  return function load(id) {
    const known = files.get(id)
    if (known) return known.exports
    if (id === OWN || !id.startsWith('./')) return require(id)
    const filename = path.join(program, id)
    // Before it is read: what it is changed to later is not kept under its name.
    const name = nameOf(filename)
    const content = readFileSync(filename, 'utf8')
    if (content.includes(IMPORT)) return require(id)
    const run = compile(content, filename, name)
    const file = { exports: {} }
    files.set(id, file)
    try {
      run.call(file.exports, file.exports, load, file, filename, program)
    } catch (error) {
      // As Node does: half of it is of no use to who asks again.
      files.delete(id)
      throw error
    }
    return file.exports
  }

  function compile(content: string, filename: string, name: string | undefined): Run {
    const script = scriptOf(content, filename, name && kept.read(name))
    if (name && script.cachedDataRejected !== false) anew.set(name, script)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what WRAPPER makes is one
    return script.runInThisContext() as Run
  }
}

function keepLater(kept: Kept, anew: Map<string, Script>): void {
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
 * longer than all else that is done here. Undefined for a file that was changed since the process began: it may be changed
 * again, and the system's clock not tell it.
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

function scriptOf(content: string, filename: string, cachedData: Buffer | undefined | ''): Script {
  const [before, after] = WRAPPER
  return new Script(`${before}${content}${after}`, {
    filename,
    // Node does the same to a file; stack traces tell columns of the file.
    columnOffset: -before.length,
    ...(cachedData && { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
}
