import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { overview } from '../../src/cli/help.js'
import { main } from '../../src/cli/main.js'
import { testShell } from './cli-shell.js'

/** The value imports of a file: relative ones as paths, and packages by name. */
function importsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8').replaceAll(/^import type [^']*'[^']*'/gm, '')
  const names = [...source.matchAll(/^(?:import|export)(?: [^'=(]*? from)? '([^']+)'/gm)].map(
    (match) => match[1] ?? '',
  )
  return names.map((name) =>
    name.startsWith('.') ? path.join(path.dirname(file), name).replace(/\.js$/, '.ts') : name,
  )
}

function reached(file: string, seen = new Set<string>()): Set<string> {
  for (const name of importsOf(file)) {
    if (seen.has(name)) continue
    seen.add(name)
    if (name.endsWith('.ts')) reached(name, seen)
  }
  return seen
}

it('imports at every start only what help is made of', () => {
  const names = [...reached('src/cli/main.ts')]
  const packages = names.filter((name) => !name.endsWith('.ts') && !name.endsWith('.json'))
  expect(packages.filter((name) => !name.startsWith('node:'))).toEqual(['commander'])
  const rooms = names.flatMap((name) => /^src\/(\w+)/.exec(name)?.[1] ?? [])
  expect([...new Set(rooms)].toSorted()).toEqual(['base', 'cli', 'codehost', 'journal'])
  expect(names.filter((name) => name.includes('cli/commands/'))).toEqual([])
})

it.each([[[]], [['-q']], [['--profile', 'x']], [['--json']]])('prints the overview for %j', async (argv) => {
  const { shell, out, err } = testShell()
  expect({ code: await main(argv, shell), err: err() }).toEqual({ code: 0, err: '' })
  expect(out()).toBe(overview(shell.stdout))
})

it('opens standard input for a command that reads it, and for no other', async () => {
  let isOpen = false
  const { shell } = testShell()
  const context = Object.defineProperty({ ...shell }, 'stdin', {
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
