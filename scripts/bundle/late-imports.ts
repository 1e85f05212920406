import type { Plugin } from 'rolldown'

const FILE = 'import.js'

/**
 * Has a bundle of CommonJS files import packages by way of one small file: in Node 20, code that was compiled at an earlier
 * start (bin/compiled.ts) cannot import by itself.
 */
export function lateImports(): Plugin {
  return {
    name: 'late-imports',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) if (file.type === 'chunk') file.code = late(file.code)
      this.emitFile({ type: 'asset', fileName: FILE, source: 'module.exports = (name) => import(name)\n' })
    },
  }
}

function late(code: string): string {
  return code.replaceAll(/\bimport\((?="[^"]+"\))/g, `require("./${FILE}")(`)
}
