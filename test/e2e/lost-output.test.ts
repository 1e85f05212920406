import { spawnSync } from 'node:child_process'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import type { Program } from '../helpers/program.js'
import { journalOf, serve } from '../helpers/serve.js'

const OK = { status: 200, type: 'application/json', body: '{"ok":true}' }
const STOPPED = { code: 0, signal: null }

/** Has a shell start the program with its output redirected. */
const redirected = (redirection: string): string[] => ['sh', '-c', `exec "$@" ${redirection}`, 'sh']

/** Delivers once with each id, and a refused delivery before each: that is a line on both streams. */
async function deliver(url: string, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    expect(await post(`${url}/webhook`, githubDelivery({ id, secret: 'other' }))).toMatchObject({
      status: 401,
    })
    expect(await post(`${url}/webhook`, githubDelivery({ id }))).toEqual(OK)
  }
}

async function stored(home: string): Promise<string[]> {
  return (await journalOf(home)).map(({ deliveryId }) => deliveryId)
}

/** The address in the start-up block, where standard output is lost. */
async function addressOf(program: Program): Promise<string> {
  await program.says('/webhook\n')
  const { err } = program
  return /address +(\S+)/.exec(err)?.[1] ?? ''
}

describeWith('Linux', 'relay serve without its output', () => {
  it('continues where standard error is on a full disk, and stops with exit 0', async () => {
    const home = emptyFolder()
    await using program = serve(home, redirected('2>/dev/full'))
    await deliver(await program.url(), ['1', '2', '3'])
    expect(await program.stop()).toMatchObject(STOPPED)
    expect(await stored(home)).toEqual(['1', '2', '3'])
  })

  it('continues where standard output is on a full disk, and warns of it once', async () => {
    const home = emptyFolder()
    await using program = serve(home, redirected('>/dev/full'))
    await deliver(await addressOf(program), ['1', '2', '3'])
    const { code, err } = await program.stop()
    expect([code, err.match(/warning: standard output cannot be written.*/g)]).toEqual([
      0,
      [
        'warning: standard output cannot be written (ENOSPC: no space left on device, write); relay continues without it. Stop it with Ctrl-C or SIGTERM',
      ],
    ])
    expect(await stored(home)).toEqual(['1', '2', '3'])
  })

  it('continues when the readers of both have gone', async () => {
    const home = emptyFolder()
    await using program = serve(home)
    const url = await program.url()
    program.child.stdout?.destroy()
    program.child.stderr?.destroy()
    await deliver(url, ['1', '2', '3'])
    expect(await program.stop()).toMatchObject(STOPPED)
    expect(await stored(home)).toEqual(['1', '2', '3'])
  })

  it('writes again once there is room', async () => {
    const home = emptyFolder()
    const file = path.join(home, 'log')
    // 4 MiB, at which `ulimit` allows no more, in blocks of 512 bytes.
    writeFileSync(file, '')
    truncateSync(file, 4_194_304)
    await using program = serve(home, ['sh', '-c', `ulimit -S -f 8192; exec "$@" 2>>${file}`, 'sh'])
    await deliver(await program.url(), ['1'])
    expect(readFileSync(file).length).toBe(4_194_304)
    spawnSync('prlimit', ['--pid', String(program.pid), '--fsize=unlimited'])
    await deliver(await program.url(), ['2'])
    expect(await program.stop()).toMatchObject(STOPPED)
    expect(readFileSync(file, 'utf8').replaceAll('\0', '')).toMatch(/^\d\d:\d\d:\d\d {2}#2 .*push/m)
    expect(await stored(home)).toEqual(['1', '2'])
  })
})
