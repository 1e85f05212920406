import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'rolldown'
import { licences } from './licences.js'

const SOURCE = 'src/inspector/page'
const FOLDER = 'dist/inspect'

/**
 * Bundles the inspector's page into dist/inspect: `app.js`, `code.js` with CodeMirror, which is loaded with the first delivery, and
 * `app.css`. The names are fixed; the server gives each an ETag.
 */
export async function bundleBrowser(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true })
  await build({
    input: { app: `${SOURCE}/app.tsx` },
    platform: 'browser',
    tsconfig: false,
    transform: { target: 'es2022', jsx: { runtime: 'automatic', importSource: 'preact' } },
    plugins: [licences()],
    output: {
      dir: FOLDER,
      format: 'esm',
      minify: true,
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
    },
  })
  const style = ['base', 'app'].map((name) => readFileSync(`${SOURCE}/${name}.css`, 'utf8')).join('')
  writeFileSync(`${FOLDER}/app.css`, style.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/\n\s*/g, '\n'))
}
