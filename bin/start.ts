import { Module } from 'node:module'
import path from 'node:path'
import envPaths from 'env-paths'
import { keepCompiled, type Require } from './compiled.js'
import { makeOwn } from './kept.js'

/** What the bundle calls the file in which `process.ts` is. */
const MAIN = './main.js'

/** The first version of Node that may keep what it compiles; to ask an older one takes a quarter of a millisecond. */
const KEEPING = 22

/** Whatever takes more than the version alone. */
export function start(): void {
  const load = loader()
  // When this file has been loaded, of which it has a use.
  if (load) queueMicrotask(() => load(MAIN))
  else void import('./process.js')
}

/** What loads the program's files as they were compiled at an earlier start; undefined where Node sees to that, or nobody. */
function loader(): Require | undefined {
  // What tsx compiles while developing, it keeps itself. The variable is Node's own.
  if (!import.meta.filename.endsWith('.js') || process.env['NODE_DISABLE_COMPILE_CACHE']) return undefined
  const folder = path.join(envPaths('relay', { suffix: '' }).cache, 'compiled')
  if (Number.parseInt(process.versions.node) < KEEPING)
    return keepCompiled(import.meta.dirname, folder, require)
  // Node itself looks at no owner.
  if ('enableCompileCache' in Module && typeof Module.enableCompileCache === 'function' && makeOwn(folder))
    Module.enableCompileCache(folder)
  return undefined
}
