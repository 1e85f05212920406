// Writes `fixtures/` but for Gitea's: `npm run fixtures`. Always the same bytes, which test/fixtures.test.ts compares.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fixtureFiles } from './fixture-set/files.js'

const files = fixtureFiles()
for (const folder of ['fixtures/github', 'test/fixtures/github'])
  rmSync(folder, { recursive: true, force: true })
for (const [file, text] of files) {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}
