import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { start } from './programs/start.js'

/** A flush takes a tenth of a second, so that whoever does not wait for it is seen to be early. */
const SLOW = 'inject=fdatasync:delay_exit=100000'

/** What of a trace matters: pages written, the flush, the meta page that makes them count written through, and what was said. */
function read(trace: string): string[] {
  const synchronous = /openat\(.*O_DSYNC.*\) = (\d+)/.exec(trace)?.[1] ?? 'none'
  return trace.split('\n').flatMap((line) => {
    const [, file] = /\bp?writev?(?:64)?\((\d+),/.exec(line) ?? []
    if (file === '1') return /"\\"(.*)\\"\\n"/.exec(line)?.[1] ?? []
    if (file === synchronous) return 'commit'
    return /\bfdatasync(?:\(\d+| resumed>)\) += 0/.test(line) ? 'flush' : []
  })
}

// SIGKILL cannot show a missing flush, since the page cache survives the process: only the system calls can.
describeWith('strace', 'a change of the store', () => {
  it('is flushed, and then committed through to the disk, before its promise resolves', async () => {
    const folder = emptyFolder()
    const log = path.join(folder, 'trace')
    const calls = 'trace=openat,write,pwrite64,pwritev,fdatasync'
    await using program = start(
      'store/programs/steps',
      [folder],
      ['strace', '-f', '-e', calls, '-e', 'signal=none', '-e', SLOW, '-o', log],
    )
    expect(await program.end()).toEqual({ code: 0, stderr: '' })
    const steps = read(readFileSync(log, 'utf8'))
    const said = ['put', 'putIfAbsent', 'take', 'delete', 'write', 'write as expected', 'commit']
    expect(steps.slice(steps.indexOf('ready'))).toEqual([
      'ready',
      ...said.flatMap((word) => ['flush', 'commit', word]),
    ])
  }, 60_000)
})
