import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

/** Files that call JSON.parse themselves, and whose text that is. All other text comes from outside, and goes through src/json/parse.ts. */
const OWN: Readonly<Record<string, string>> = {
  'json/parse.ts': 'the one place',
  'json/text.ts': 'one string token',
  'sandbox/payloads.ts': 'packaged fixtures',
  'replay/freshen.ts': 'texts of packaged fixtures',
  'replay/redact/content.ts': 'one string token',
  'replay/synthesize.ts': 'packaged fixtures',
  'journal/read.ts': 'columns that relay wrote',
  'store/cipher.ts': 'a record that relay encrypted',
  'store/kv.ts': 'a record that relay wrote',
  'instance/profile.ts': "a file of the profile's folder",
  'instance/running.ts': 'a file of the data folder',
  'instance/client.ts': 'an answer that the key of the profile signed',
  'server/instance.ts': 'a body that the key of the profile signed',
  'cli/mcp/pages.ts': 'one string token',
  'testing/sandbox.ts': 'what the sandbox answered',
  'inspector/page/command.ts': 'what relay wrote into its page',
  'inspector/page/client.ts': 'what relay sent to its page, and what the page stored',
  'inspector/page/edit.tsx': 'text that a person edits, in the browser',
  'inspector/page/code.ts': 'text that a person edits, in the browser',
}

it('only src/json/parse.ts parses JSON from outside', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  )
  const parsing = files.filter((name) =>
    /\bJSON\s*(?:\?\.|\.)\s*parse\b|\bJSON\[|\{[^}]*\bparse\b[^}]*\}\s*=\s*JSON\b|\.json\(\)(?!\s*\.catch\(\(\) => null\))/.test(
      readFileSync(`src/${name}`, 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, ''),
    ),
  )
  expect(parsing.toSorted()).toEqual(Object.keys(OWN).toSorted())
})
