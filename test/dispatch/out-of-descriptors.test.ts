import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const PROGRAM = path.resolve('test/dispatch/programs/out-of-descriptors.ts')

describe('a delivery where no file can be opened any more', () => {
  it('finds its targets unreachable, and succeeds when that is over', async () => {
    const limited = ['-c', 'ulimit -n 128; exec "$0" "$@"', process.execPath, '--import', 'tsx', PROGRAM]
    const { stdout } = await promisify(execFile)('/bin/sh', limited)
    const error = 'relay has too many files and connections open: raise its limit (ulimit -n)'
    const unreachable = { outcome: 'unreachable', error }
    const succeeded = { outcome: 'succeeded', error: null }
    expect(JSON.parse(stdout)).toEqual({
      without: [unreachable, unreachable],
      within: [succeeded, succeeded],
    })
  })
})
