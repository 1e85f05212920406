// `npm pack` and `npm publish` call this: `tsx scripts/manifest.ts pack` leaves only what an installed package needs in
// package.json, and `restore` undoes that.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const FILE = 'package.json'
const ORIGINAL = 'package.original.json'
/** Fields that only work on relay itself needs. */
const OWN: ReadonlySet<string> = new Set(['scripts', 'devDependencies', 'allowScripts'])

/** The text of the package.json that is packed, from that of the repository. */
export function packedManifest(text: string): string {
  const manifest: Record<string, unknown> = JSON.parse(text)
  const packed = Object.entries(manifest).filter(([field]) => !OWN.has(field))
  return `${JSON.stringify(Object.fromEntries(packed), null, 2)}\n`
}

const [, , action] = process.argv
if (action === 'pack') {
  // After a pack that was interrupted, the original is the one put aside.
  if (!existsSync(ORIGINAL)) writeFileSync(ORIGINAL, readFileSync(FILE))
  writeFileSync(FILE, packedManifest(readFileSync(ORIGINAL, 'utf8')))
} else if (action === 'restore' && existsSync(ORIGINAL)) renameSync(ORIGINAL, FILE)
