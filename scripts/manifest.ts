// `npm pack` and `npm publish` call this: `tsx scripts/manifest.ts pack` leaves only what an installed package needs in
// package.json, and `restore` undoes that. npm would otherwise warn of the repository's own `prepare`.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { packedManifest } from './manifest/packed.js'

const FILE = 'package.json'
const ORIGINAL = 'package.original.json'

if (process.argv[2] === 'pack') {
  // After a pack that was interrupted, the original is the one put aside.
  if (!existsSync(ORIGINAL)) writeFileSync(ORIGINAL, readFileSync(FILE))
  writeFileSync(FILE, packedManifest(readFileSync(ORIGINAL, 'utf8')))
} else if (existsSync(ORIGINAL)) renameSync(ORIGINAL, FILE)
