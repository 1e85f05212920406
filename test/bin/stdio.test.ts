import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'

const PROGRAM = path.resolve('test/bin/programs/stdio.ts')

/** Far more than a pipe holds, which is 64 KiB; each line has ten bytes. */
const MANY = 30_000

const written = (lines: number): string =>
  Array.from({ length: lines }, (_, n) => `${String(n).padStart(9)}\n`).join('')

/** The program in a process of its own, writing to what is given. */
function start(lines: number, output: number | 'pipe') {
  const args = ['--import', 'tsx', PROGRAM, String(lines)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', output, 'inherit', 'pipe'] })
  const told = child.stdio[3]
  if (!told || !('readable' in told)) throw new Error('unreachable: it is a pipe')
  return { child, said: text(told), ended: once(child, 'close') }
}

/** What the program says of itself when it has written so many lines to a file. */
async function writeTo(file: string, lines: number): Promise<{ code: unknown; said: string }> {
  const fd = openSync(file, 'a')
  const { said, ended } = start(lines, fd)
  closeSync(fd)
  const [code] = await ended
  return { code, said: await said }
}

const FINE = { code: 0, said: 'terminal: undefined\n' }

describe('standard output', () => {
  it('is a file: everything is appended', async () => {
    const file = path.join(emptyFolder(), 'file')
    await writeTo(file, 2)
    expect(await writeTo(file, MANY)).toEqual(FINE)
    expect(readFileSync(file, 'utf8')).toBe(written(2) + written(MANY))
  })

  it.skipIf(process.platform === 'win32')('is the null device: it takes everything', async () => {
    expect(await writeTo(devNull, MANY)).toEqual(FINE)
  })

  it.runIf(existsSync('/dev/full'))(
    'is a device that is full: it is reported, and nothing ends by it',
    async () => {
      const { code, said } = await writeTo('/dev/full', 1)
      expect({ code, told: said.includes('failed\n') }).toEqual({ code: 0, told: true })
    },
  )

  it('is a pipe that is full, and read late: all comes', async () => {
    const { child, said, ended } = start(MANY, 'pipe')
    if (!child.stdout) throw new Error('unreachable: it is a pipe')
    // Some has come, and the pipe and what has come of it hold no more than half.
    await once(child.stdout, 'readable')
    expect(await text(child.stdout)).toBe(written(MANY))
    const [code] = await ended
    expect({ code, said: await said }).toEqual(FINE)
  })

  it('is a pipe whose reader has closed it: this is reported, and nothing ends', async () => {
    const { child, said, ended } = start(MANY, 'pipe')
    child.stdout?.destroy()
    const [code] = await ended
    expect({ code, told: (await said).includes('failed\n') }).toEqual({ code: 0, told: true })
  })
})
