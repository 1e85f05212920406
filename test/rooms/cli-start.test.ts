import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'

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
  expect(packages.filter((name) => !name.startsWith('node:')).toSorted()).toEqual([
    'commander',
    'fast-string-truncated-width',
  ])
  const rooms = names.flatMap((name) => /^src\/(\w+)/.exec(name)?.[1] ?? [])
  expect([...new Set(rooms)].toSorted()).toEqual(['base', 'cli', 'dispatch', 'journal', 'providers'])
  expect(names.filter((name) => name.includes('cli/commands/'))).toEqual([])
})
