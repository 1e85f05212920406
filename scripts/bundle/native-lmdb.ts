import type { Plugin } from 'rolldown'

/** Where lmdb lies when the bundle runs: from there it looks for its compiled part. Resolving its name takes far longer. */
const PLACE = `import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
const { resolve } = createRequire(import.meta.url)
const files = (resolve.paths('lmdb') ?? []).map((folder) => path.join(folder, 'lmdb', 'package.json'))
const file = files.find((name) => existsSync(name))
export const place = pathToFileURL(file ? realpathSync.native(file) : resolve('lmdb')).href
`

/** What lmdb encodes values with that are not bytes, as all of relay's are. */
const ENCODER = `export class Encoder {
  constructor() {
    throw new Error('relay keeps bytes')
  }
}
`

/** lmdb prints a stack of its own when the disk is full; relay says that in its own words. */
const CONSOLE = `const { console: standard } = globalThis
export const console = {
  ...standard,
  error: (...values) => {
    if (process.env['RELAY_DEBUG']) standard.error(...values)
  },
}
`

const MODULES: Readonly<Record<string, string>> = {
  '\0place-of-lmdb': PLACE,
  '\0no-msgpackr': ENCODER,
  '\0console-of-lmdb': CONSOLE,
}

/**
 * Takes the JavaScript of lmdb into a bundle, which is loaded in half the time of its 12 files, and leaves the compiled part.
 * Without msgpackr, which is a third of it.
 */
export function nativeLmdb(): Plugin {
  return {
    name: 'native-lmdb',
    resolveId: (id) => (id === 'msgpackr' ? '\0no-msgpackr' : id in MODULES ? id : undefined),
    load: (id) => MODULES[id],
    transform: {
      filter: { id: /node_modules\/lmdb\/[^/]+\.js$/, code: /import\.meta\.url|console\./ },
      handler: (code) => ({
        code: `import { place } from '\0place-of-lmdb'; import { console } from '\0console-of-lmdb'
${code.replaceAll('import.meta.url', 'place')}`,
        map: null,
      }),
    },
  }
}
