import type { Plugin } from 'rolldown'

const IMPORTS = `import { createRequire as requireFrom } from 'node:module'
import { pathToFileURL as asUrl } from 'node:url'
`

/** Where lmdb lies when the bundle runs: from there it looks for its compiled part. */
const PLACE = "asUrl(requireFrom(import.meta.url).resolve('lmdb')).href"

/** Takes the JavaScript of lmdb into a bundle, which is loaded in half the time of its 12 files, and leaves the compiled part. */
export function nativeLmdb(): Plugin {
  return {
    name: 'native-lmdb',
    transform: {
      filter: { id: /node_modules\/lmdb\/[^/]+\.js$/, code: 'import.meta.url' },
      handler: (code) => ({ code: IMPORTS + code.replaceAll('import.meta.url', PLACE), map: null }),
    },
  }
}
