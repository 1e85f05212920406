/** Writes `fixtures/` anew: `npm run fixtures`. The same bytes each time; test/fixtures.test.ts compares them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fixtureFiles } from './fixture-set/files.js'

const files = fixtureFiles()
for (const folder of ['fixtures', 'test/fixtures']) rmSync(folder, { recursive: true, force: true })
for (const [file, text] of files) {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}
