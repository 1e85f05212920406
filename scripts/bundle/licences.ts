import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Plugin } from 'rolldown'

/** Adds a file with the licences of all packages in the bundle. */
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

/** The folder of a module's package. */
function packageOf(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  if (file === undefined && !license) throw new Error(`${folder} has no licence`)
  // weak-lru-cache names its licence but has no licence file.
  const text = file === undefined ? `${license}\n` : readFileSync(path.join(folder, file), 'utf8')
  return `${name} ${version}\n\n${text}`
}
