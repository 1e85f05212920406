import { describe, expect, it } from 'vitest'
import { takeInstance } from '../../src/instance/instance.js'
import { findInstance } from './rig.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'

describe('processes that take one profile at once', () => {
  it('get it one at a time: the others fail with its owner until that process dies', async () => {
    const folder = emptyFolder()
    const programs = Array.from({ length: 4 }, () => start('instance/programs/take', [folder]))
    for (const program of programs) expect(await program.line()).toBe('"ready"')
    for (const program of programs) program.tell('go')
    const results = await Promise.all(
      programs.map(async (program): Promise<string> => JSON.parse(await program.line())),
    )

    const winner = programs[results.findIndex((text) => text.startsWith('http'))]
    const url = results.find((text) => text.startsWith('http')) ?? ''
    const refusal = `RelayError: This profile is already served by process ${winner?.child.pid} at ${url}. Stop it, or choose another profile with --profile`
    expect(results.toSorted()).toEqual([refusal, refusal, refusal, url])

    await using database = await openDatabase({ kind: 'file', folder })
    expect(await findInstance(database.store)).toMatchObject({ pid: winner?.child.pid, url })
    for (const program of programs) await program.kill()
    expect(await findInstance(database.store)).toBeUndefined()
    const own = {
      pid: process.pid,
      url: 'http://127.0.0.1:1',
      publicUrl: 'http://127.0.0.1:1',
      provider: 'github',
      providerUrl: 'https://github.com',
    }
    expect((await takeInstance(database.store, own)).record).toMatchObject(own)
  })
})
