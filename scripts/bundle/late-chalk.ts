import { fileURLToPath } from 'node:url'
import type { Plugin } from 'rolldown'

const LATE = '\0late-chalk'
const STUB = '\0no-supports-color'

const MODULES: Readonly<Record<string, string>> = {
  [LATE]: `export class Chalk {
  constructor(options) {
    const { Chalk } = require('chalk')
    return new Chalk(options)
  }
}
`,
  [STUB]: 'export default { stdout: false, stderr: false }',
}

/**
 * Has chalk run when the first thing is to be painted, which where nobody looks is never. Leaves out how it finds out what a
 * terminal can do, for which it loads the terminal: relay tells it.
 */
export function lateChalk(): Plugin {
  return {
    name: 'late-chalk',
    resolveId(id, importer) {
      if (id === '#supports-color') return STUB
      if (id === 'chalk') return importer === LATE ? fileURLToPath(import.meta.resolve('chalk')) : LATE
      return undefined
    },
    load: (id) => MODULES[id],
  }
}
