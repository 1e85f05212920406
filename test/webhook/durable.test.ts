import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { lacks } from '../helpers/needs.js'
import { startServe } from './programs/start.js'

/** In the delivery's body, and nowhere else in what the process writes. */
const MARK = 'a-body-to-look-for'
/** More than a page, so that it is written as it is; its beginning is what strace shows. */
const BODY = JSON.stringify(MARK.repeat(500))

/** What of a trace matters here, in the order in which it began or, for a flush, was done. */
function read(trace: string): string[] {
  const synchronous = /openat\(.*O_DSYNC.*\) = (\d+)/.exec(trace)?.[1] ?? 'none'
  return trace.split('\n').flatMap((line) => {
    if (/\b(?:pwrite64|p?writev?)\(\d+.*a-body-to-look-for/.test(line)) return 'the body is written'
    if (/\bfdatasync(?:\(\d+| resumed>)\) += 0/.test(line)) return 'flushed'
    if (new RegExp(`\\bpwrite64\\(${synchronous},`).test(line)) return 'the commit is written through'
    return /\bwritev?\(\d+.*HTTP\/1\.1 200/.test(line) ? 'answered 200' : []
  })
}

// SIGKILL cannot show a missing flush, since the page cache survives the process: only the system calls can.
describe.skipIf(lacks('strace'))('a delivery', () => {
  it('is flushed to the disk between its write and its 200', async () => {
    const folder = emptyFolder()
    const log = path.join(folder, 'trace')
    const calls = 'trace=openat,write,writev,pwrite64,pwritev,fdatasync'
    const strace = ['strace', '-f', '-s', '64', '-e', calls, '-e', 'signal=none', '-o', log]
    await using served = await startServe(folder, strace)
    expect(await post(served.webhook, githubDelivery({ body: BODY }))).toMatchObject({ status: 200 })
    // A line is there when the next begins.
    await fetch(`${served.url}/health`)
    const steps = read(readFileSync(log, 'utf8'))
    expect(steps.slice(steps.indexOf('the body is written'), steps.indexOf('answered 200') + 1)).toEqual([
      'the body is written',
      'flushed',
      'the commit is written through',
      'answered 200',
    ])
  }, 60_000)
})
