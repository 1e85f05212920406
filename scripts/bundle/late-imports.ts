import type { Plugin } from 'rolldown'

const FILE = 'import.js'

/**
 * Packages that are CommonJS: they are required. Where they lie behind a symbolic link, as pnpm lays them, Node 22.23 may give
 * who imports them the exports of a module that has not run.
 */
const COMMON_JS: ReadonlySet<string> = new Set(['undici'])

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
  return code.replaceAll(/\bimport\("([^"]+)"\)/g, (_, name: string) =>
    COMMON_JS.has(name)
      ? `Promise.resolve().then(() => require("${name}"))`
      : `require("./${FILE}")("${name}")`,
  )
}
