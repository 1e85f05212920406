import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMANDS, createProgram } from '../../src/cli/program.js'
import { testContext } from '../helpers/context.js'

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

describe('the program', () => {
  it('declares every command of the list, each once', () => {
    const names = createProgram(testContext().context).commands.map((command) => command.name())
    expect(names).toEqual(COMMANDS.map(({ name }) => name))
    expect(new Set(names).size).toBe(names.length)
  })

  it('imports what a command runs only when it runs', () => {
    const names = [...reached('src/cli/program.ts')]
    const packages = names.filter((name) => !name.endsWith('.ts') && !name.endsWith('.json'))
    expect(packages.filter((name) => !name.startsWith('node:')).toSorted()).toEqual([
      'commander',
      'string-width',
    ])
    const rooms = names.flatMap((name) => /^src\/(\w+)/.exec(name)?.[1] ?? [])
    expect([...new Set(rooms)].toSorted()).toEqual([
      'base',
      'cli',
      'codehost',
      'dispatch',
      'journal',
      'json',
      'tokens',
    ])
    expect(
      names.filter((name) => /commands\/\w+\/(?!declaration|send-options|word-kinds)/.test(name)),
    ).toEqual([])
  })
})
