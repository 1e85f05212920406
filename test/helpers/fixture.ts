import type { Fixture } from '../../src/fixtures/fixture.js'
import { checkFixture, parseJson } from '../../src/fixtures/parse.js'

/** Parses the text of a fixture file; `name` is the file's name in errors. */
export function parseFixture(text: string, name: string): Fixture {
  const json = text.replace(/^\uFEFF/, '')
  return checkFixture(parseJson(json, name), json, name)
}
