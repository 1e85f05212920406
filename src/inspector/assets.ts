import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** What the browser loads: built files with hashed names, each also compressed (`.br`, `.gz`). */
export interface Assets {
  /** The path of a file by its name in the source, such as `page.js`. Undefined where it was not built. */
  path(name: string): string | undefined
  /** The file's answer; undefined for a name that is not in the manifest. */
  respond(file: string, acceptEncoding: string): Promise<Response | undefined>
}

export const ASSETS_PATH = '/inspect/assets/'
/** Names in the source, and the hashed names of the files. */
const manifestOf = z.record(z.string(), z.string().regex(/^[\w.-]+$/))
/** Where the folder may be from here: from the bundle, the compiled library, and the source. */
const FOLDERS = ['../inspect/', '../../inspect/', '../../dist/inspect/']
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
const ENCODINGS = [
  { encoding: 'br', end: '.br' },
  { encoding: 'gzip', end: '.gz' },
] as const

/** Opens the folder that the build makes. Without one there are no assets, and pages work without scripts. */
export function openAssets(): Assets {
  const { folder, manifest } = readManifest()
  const files = new Set(Object.values(manifest))
  return {
    path(name) {
      const file = manifest[name]
      return file === undefined ? undefined : ASSETS_PATH + file
    },
    async respond(file, acceptEncoding) {
      if (!files.has(file)) return undefined
      const accepted = ENCODINGS.find(({ encoding }) => acceptEncoding.includes(encoding))
      const body = await readFile(new URL(file + (accepted?.end ?? ''), folder))
      return new Response(body, {
        headers: {
          'Content-Type': TYPES[file.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
          'Cache-Control': 'public, max-age=31536000, immutable',
          Vary: 'Accept-Encoding',
          ...(accepted && { 'Content-Encoding': accepted.encoding }),
        },
      })
    },
  }
}

function readManifest(): { readonly folder: URL; readonly manifest: Readonly<Record<string, string>> } {
  for (const place of FOLDERS) {
    const folder = new URL(place, import.meta.url)
    try {
      const text = readFileSync(fileURLToPath(new URL('manifest.json', folder)), 'utf8')
      return { folder, manifest: manifestOf.parse(JSON.parse(text)) }
    } catch {
      // Not there.
    }
  }
  return { folder: new URL(import.meta.url), manifest: {} }
}
