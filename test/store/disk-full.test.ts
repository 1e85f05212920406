import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { start } from './programs/start.js'

/** No file of the process may grow beyond 2 MiB, in the 512-byte blocks that POSIX counts. The limit can be raised again. */
const SMALL_DISK = ['sh', '-c', 'ulimit -S -f 4096; exec "$@"', 'sh']
const FULL = 'storage: The store could not be written: Input/output error'

// Raising the limit of another process takes Linux' prlimit; LMDB's files are the same elsewhere.
describeWith('Linux', 'the store on a full disk', () => {
  it('fails every write at once and leaves no trace of it; with room again, writes work', async () => {
    const folder = emptyFolder()
    await using program = start('store/programs/fill', [folder], SMALL_DISK)
    const { ms, ...full } = JSON.parse(await program.line())
    expect(full).toEqual({ ends: [FULL], rows: 0, first: 'kept', keys: ['first'] })
    expect(ms).toBeLessThan(4000)

    spawnSync('prlimit', ['--pid', String(program.child.pid), '--fsize=unlimited'])
    program.tell('there is room')
    expect(JSON.parse(await program.line())).toEqual({ ends: ['done', 'done', 'done'] })
    program.tell('end')
    expect(await program.end()).toMatchObject({ code: 0 })
    await using database = await openDatabase({ kind: 'file', folder })
    expect(await database.store.list('')).toEqual(['put'])
  })
})
