import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { start } from '../kit/run.js'

/** Runs a shell's command line, in which `relay` is the built program. How it ended, and its standard error. */
async function run(line: string): Promise<{ code: number | null; err: string }> {
  const script = `program=("$@"); relay() { "\${program[@]}" "$@"; }\n${line}`
  await using shell = start([], { wrapper: ['bash', '-o', 'pipefail', '-c', script, 'bash'] })
  const { code, err } = await shell.ended
  return { code, err }
}

const OK = { status: 200, type: 'application/json', body: '{"ok":true}' }
const LOST = { type: 'error', code: 'storage' }

describeWith('Linux', 'output that cannot be written', () => {
  it.each(['completion bash', '--help', 'config'])('is a failure of relay %s', async (command) => {
    const { code, err } = await run(`relay ${command} > /dev/full`)
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/^error: The output could not be written: .+\n$/),
    })
  })

  it('is printed as an object where objects were asked for', async () => {
    const { code, err } = await run('relay config --json > /dev/full')
    expect([code, JSON.parse(err)]).toMatchObject([1, LOST])
  })

  it('is a failure also where a part of it could be', async () => {
    const file = path.join(emptyFolder(), 'out')
    const { code, err } = await run(`ulimit -f 1; relay help settings > ${file}`)
    expect([code, err]).toEqual([1, expect.stringContaining('could not be written')])
    expect(readFileSync(file).length).toBeGreaterThan(0)
  })

  it('does not hide a failure that cannot be printed', async () => {
    expect(await run('relay --nonsense 2> /dev/full')).toEqual({ code: 2, err: '' })
  })
})

describe('output without a reader', () => {
  it('is no failure', async () => {
    expect(await run('relay completion bash | true')).toEqual({ code: 0, err: '' })
  })

  it('ends relay serve, which finishes what it has, as it ends other programs', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serveWith({ built: true })
    expect(await program.deliver({ id: '1' })).toEqual(OK)
    await program.object({ type: 'delivery', n: 1 })
    program.child.stdout?.destroy()
    expect(await program.deliver({ id: '2' })).toEqual(OK)
    expect(await program.ended).toMatchObject({ code: 0, signal: null })
    expect(program.err).toContain('The reader of the output has gone, so relay stops.')
    expect((await linesOf(here)).map(({ delivery }) => delivery)).toEqual(['1', '2'])
  })

  it('does not end relay serve --keep-running when both readers have gone', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serveWith({ built: true }, '--keep-running')
    program.child.stdout?.destroy()
    program.child.stderr?.destroy()
    // A refused delivery is a line on both streams.
    for (const id of ['1', '2', '3']) {
      expect(await program.deliver({ id, secret: 'other' })).toMatchObject({ status: 401 })
      expect(await program.deliver({ id })).toEqual(OK)
    }
    expect(await program.stop()).toMatchObject({ code: 0, signal: null })
    expect((await linesOf(here)).map(({ delivery }) => delivery)).toEqual(['1', '2', '3'])
  })
})
