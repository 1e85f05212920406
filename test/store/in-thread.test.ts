import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { start } from './programs/start.js'

describe('a process that ends at once', () => {
  // The library aborts the process otherwise, which leaves the wrong exit code and may leave a core dump.
  it.each(['opening', 'reading'])('has its own exit code while its thread is %s', async (when) => {
    await using program = start('store/programs/exit', [`${emptyFolder()}/relay.db`, when])
    expect(await program.end()).toEqual({ code: 7, stderr: '' })
  })
})
