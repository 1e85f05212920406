import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { run } from '../kit/run.js'
import { bare, example, GITHUB_TRIGGERS } from './example.js'

describe('relay completion', () => {
  it('knows three shells', async () => {
    expect(await run(['completion', 'tcsh'])).toEqual({
      code: 2,
      out: '',
      err: "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\nUsage: relay completion [options] <shell>\n(relay completion --help says more)\n",
    })
  })

  it('offers what the profile has, and makes none', async () => {
    await using here = await example()
    const offered = async (...typed: string[]): Promise<string[]> =>
      (await here.run('completion', 'bash', '--', ...typed)).out.trim().split('\n')
    expect(await offered('show', '')).toEqual(['last', '5', '4', '3', '2', '1'])
    expect(await offered('--profile', '')).toEqual(['default'])
    expect(await offered('trigger', '')).toEqual(GITHUB_TRIGGERS)
    expect(await offered('wait', '')).toEqual(expect.arrayContaining(['push', 'issues', 'issues.opened']))
    expect(await offered('replay', 'la')).toEqual([':files', 'last'])
    await using empty = await bare()
    expect((await empty.run('completion', 'bash', '--', 'show', '')).out).toBe('last\n')
    expect((await empty.run('completion', 'bash', '--', '--profile', '')).out).toBe('')
    expect(readdirSync(empty.home)).toEqual([])
  })

  it('offers what the one running instance has', async () => {
    await using here = await place()
    const relay = await here.serve()
    await relay.deliver()
    const offered = async (...typed: string[]): Promise<string[]> =>
      (await here.run('completion', 'zsh', '--', ...typed)).out.trim().split('\n')
    expect(await offered('show', '')).toEqual(['last', '1'])
    expect(await offered('trigger', '')).toEqual(GITHUB_TRIGGERS)
  })

  it('wraps its script for a program', async () => {
    const { code, out } = await run(['completion', 'fish', '--json'])
    const text = (await run(['completion', 'fish'])).out.trimEnd()
    expect({ code, object: JSON.parse(out) }).toEqual({
      code: 0,
      object: { v: 1, shell: 'fish', script: text },
    })
  })
})
