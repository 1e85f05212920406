import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Plugin } from 'rolldown'

/** Writes the licences of the packages whose code a bundle holds into a file beside it. */
export function licences(): Plugin {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
      const packages = new Set(modules.flatMap((id) => packageOf(id) ?? []))
      const source = [...packages].toSorted().map(licenceOf).join('\n')
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source })
    },
  }
}

/** The folder of the package that a module is from. */
function packageOf(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  if (file === undefined && !license) throw new Error(`${folder} has no licence`)
  // weak-lru-cache names its licence, and brings no text of it.
  const text = file === undefined ? `${license}\n` : readFileSync(path.join(folder, file), 'utf8')
  return `${name} ${version}\n\n${text}`
}
