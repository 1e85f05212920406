import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { start } from './programs/start.js'

/** A flush takes a tenth of a second, so that a call that does not wait for it is seen to be early. */
const SLOW = 'inject=fdatasync,fsync:delay_exit=100000'

/** What of a trace matters: writes to the log (`log`), flushes of it, and what was said. Several writes in a row count as one. */
function read(trace: string): string[] {
  const steps = trace.split('\n').flatMap((line) => {
    if (/\bp?writev?(?:64)?\(\d+<[^>]*relay\.db-wal>/.test(line)) return 'log'
    if (/\bf(?:data)?sync\(\d+<[^>]*relay\.db-wal>/.test(line)) return 'flush'
    return /\bwrite\(1<[^>]*>, "\\"(.*)\\"\\n"/.exec(line)?.[1] ?? []
  })
  return steps.filter((step, i) => step !== steps[i - 1])
}

// SIGKILL cannot show a missing flush, since the page cache survives the process: only the system calls can.
describeWith('strace', 'a change of the database', () => {
  it.each(['here', 'thread'])(
    'is written to the log, which is flushed before its promise resolves: %s',
    async (where) => {
      const folder = emptyFolder()
      // The first write to a new log flushes its header too.
      await (await openDatabase({ kind: 'file', folder }))[Symbol.asyncDispose]()
      const log = path.join(folder, 'trace')
      const calls = 'trace=write,pwrite64,pwritev,fdatasync,fsync'
      await using program = start(
        'store/programs/steps',
        [folder, where],
        ['strace', '-f', '-y', '-e', calls, '-e', 'signal=none', '-e', SLOW, '-o', log],
      )
      expect(await program.end()).toEqual({ code: 0, stderr: '' })
      const steps = read(readFileSync(log, 'utf8'))
      const said = ['put', 'putIfAbsent', 'take', 'delete', 'write', 'write as expected', 'append', 'record']
      const all = steps.slice(steps.indexOf('ready'))
      for (const [i, word] of said.entries()) {
        const from = all.indexOf(i === 0 ? 'ready' : (said[i - 1] ?? ''))
        expect([word, ...all.slice(from, all.indexOf(word)).slice(-2)]).toEqual([word, 'log', 'flush'])
      }
    },
    60_000,
  )
})
