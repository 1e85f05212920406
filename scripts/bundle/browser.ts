import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build, type OutputChunk } from 'rolldown'
import { licences } from './licences.js'

const SOURCE = 'src/inspector/browser'
const FOLDER = 'dist/inspect'

/**
 * Bundles the inspector's scripts and style sheet into dist/inspect: names with a hash, which may be cached for ever, and a copy
 * of each compressed with gzip and brotli. `manifest.json` gives their names by those of the source, such as `app.js`.
 */
export async function bundleBrowser(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true })
  const { output } = await build({
    input: { app: `${SOURCE}/app.tsx` },
    platform: 'browser',
    tsconfig: false,
    transform: { target: 'es2022', jsx: { runtime: 'automatic', importSource: 'hono/jsx/dom' } },
    // What the editor needs is loaded with it, and nothing of it before.
    plugins: [licences()],
    output: {
      dir: FOLDER,
      format: 'esm',
      minify: true,
      entryFileNames: '[name]-[hash].js',
      chunkFileNames: '[name]-[hash].js',
    },
  })
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  const names = Object.fromEntries(chunks.map(({ name, fileName }) => [`${name}.js`, fileName]))
  const manifest = { ...names, 'style.css': writeStyle() }
  for (const name of Object.values(manifest)) compress(path.join(FOLDER, name))
  writeFileSync(path.join(FOLDER, 'manifest.json'), JSON.stringify(manifest))
}

/** Joins the style sheets in the order of their names, without comments and indentation. */
function writeStyle(): string {
  const folder = path.join(SOURCE, 'style')
  const css = readdirSync(folder)
    .toSorted()
    .map((file) => readFileSync(path.join(folder, file), 'utf8'))
    .join('')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\n\s*/g, '\n')
  const name = `style-${createHash('sha256').update(css).digest('base64url').slice(0, 8)}.css`
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(path.join(FOLDER, name), css)
  return name
}

function compress(file: string): void {
  const bytes = readFileSync(file)
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }))
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
}
