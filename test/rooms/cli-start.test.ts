import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { COMMAND_NAMES } from '../../src/cli/catalog.js'
import { overview } from '../../src/cli/help.js'
import { main } from '../../src/cli/main.js'
import { testShell } from './cli-shell.js'

/** All that a file imports as values, and what that imports: relative names as paths, and packages. */
function reached(file: string, seen = new Set<string>()): Set<string> {
  const source = readFileSync(file, 'utf8').replaceAll(/^import type [^']*'[^']*'/gm, '')
  for (const [, name = ''] of source.matchAll(/^(?:import|export)(?: [^'=(]*? from)? '([^']+)'/gm)) {
    const isLocal = name.startsWith('.')
    const found = isLocal ? path.join(path.dirname(file), name).replace(/\.js$/, '.ts') : name
    if (seen.has(found)) continue
    seen.add(found)
    if (found.endsWith('.ts')) reached(found, seen)
  }
  return seen
}

it('imports at every start only what help is made of', () => {
  const names = [...reached('src/cli/main.ts')]
  const packages = names.filter((name) => !/\.(?:ts|json)$|^node:/.test(name))
  expect(packages).toEqual(['commander'])
  const rooms = names.flatMap((name) => /^src\/(\w+)/.exec(name)?.[1] ?? [])
  expect([...new Set(rooms)].toSorted()).toEqual(['base', 'cli'])
  const files = names.filter((name) => /cli\/commands\//.test(name))
  expect(files).toEqual(['src/cli/commands/index.ts'])
})

/**
 * Packages that the file of a command may load, in some milliseconds at most: help and completion load it. Others, such
 * as zod with the code hosts (14 ms), oauth4webapi, Hono and SQLite, load in the module that works with them.
 */
const LIGHT = new Set(['commander', 'chalk', 'fast-string-truncated-width', 'env-paths'])

it.each(COMMAND_NAMES)('loads no heavy package with the file of %s', (command) => {
  const names = [...reached(`src/cli/commands/${command}.ts`)]
  const packages = names.filter((name) => !/\.(?:ts|json)$|^node:/.test(name))
  expect(packages.filter((name) => !LIGHT.has(name))).toEqual([])
})

/** Commands that make or prove a delivery of any sender. All others know the code hosts alone, until the settings name a source. */
const OF_SENDERS: readonly string[] = [
  'export',
  'replay',
  'trigger',
  'verify',
  'setup',
  'source',
  'config',
  'doctor',
  'completion',
]

it('loads the table of senders with the files of commands that need it alone', () => {
  const files = COMMAND_NAMES.filter((command) =>
    reached(`src/cli/commands/${command}.ts`).has('src/senders/table.ts'),
  )
  expect(files).toEqual(OF_SENDERS)
})

it.each(['log', 'show', 'wait', 'routes'])(
  'loads neither senders nor an HTTP client with the file of %s',
  (command) => {
    const names = reached(`src/cli/commands/${command}.ts`)
    expect(
      ['src/senders/hosts.ts', 'src/senders/keys.ts', 'src/net/client.ts'].filter((name) => names.has(name)),
    ).toEqual([])
  },
)

it.each([[['-q']], [['--profile', 'x']], [['--json']]])('prints the overview for %j', async (argv) => {
  const { shell, out, err } = testShell()
  expect({ code: await main(argv, shell), err: err() }).toEqual({ code: 0, err: '' })
  expect(out()).toBe(overview(shell.stdout))
})

it('opens standard input for a command that reads it, and for no other', async () => {
  let isOpen = false
  const context = Object.defineProperty({ ...testShell().shell }, 'stdin', {
    get() {
      isOpen = true
      return Readable.from([])
    },
  })
  expect(await main(['version'], context)).toBe(0)
  expect(isOpen).toBe(false)
  await main(['replay', '-', '--event', 'ping', '--to', 'http://127.0.0.1:1'], context)
  expect(isOpen).toBe(true)
})
