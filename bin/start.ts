import path from 'node:path'
import envPaths from 'env-paths'
import { keepCompiled } from './compiled.js'

/** Whatever takes more than the version alone. */
export function start(): void {
  const { cache } = envPaths('relay', { suffix: '' })
  // What tsx compiles while developing, it keeps itself.
  if (import.meta.filename.endsWith('.js')) keepCompiled(import.meta.dirname, path.join(cache, 'compiled'))
  void import('./process.js')
}
