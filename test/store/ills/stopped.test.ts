import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { Disposal } from '../../../src/base/disposal.js'
import { emptyFolder } from '../../helpers/context.js'
import { describeWith } from '../../kit/needs.js'
import { start } from '../programs/start.js'
import { smallDisk } from './disk.js'
import { illDisk } from './ill-disk.js'
import { startJournal } from './program.js'

const HELD = /: another process holds it\. /
/** No call may take longer, in milliseconds. */
const LIMIT_MS = 5000

describeWith(['Linux', 'gcc'], 'a process stopped in a commit', () => {
  it('holds up no reader; a writer gets its error in time, and writes once it is gone', async () => {
    const disk = illDisk()
    const folder = emptyFolder()
    await using stopped = await startJournal(folder, 'thread', disk.wrapper)
    await stopped.ask('append', 7000)
    disk.set('slow 60000')
    // In the flush of its commit when its time limit is over.
    expect((await stopped.fails('append', 7000)).error).toMatch(/ within 4 s\. /)
    stopped.child.kill('SIGSTOP')

    await using other = await startJournal(folder, 'here')
    const read = await other.fails('newest')
    expect(read.error).toBeUndefined()
    expect(read.ms).toBeLessThan(1000)
    await other.ask('delay')
    const write = await other.fails('append', 7000)
    expect(write.error).toMatch(HELD)
    expect(write.ms).toBeLessThan(LIMIT_MS)
    // It waited without blocking, so that Ctrl-C is heard.
    expect(await other.ask('delay')).toBeLessThan(250)

    await stopped.kill()
    expect((await other.fails('append', 7000)).error).toBeUndefined()
    expect(await other.ask('check')).toEqual(['ok'])
  })
})

describe('200 that open and read at once, in 8 processes', () => {
  it('are all served while another writes', async () => {
    const folder = emptyFolder()
    await using writer = await startJournal(folder, 'thread')
    await writer.ask('append', 7000)
    await using crowd = new Disposal()
    const readers = Array.from({ length: 8 }, () => crowd.use(start('store/programs/crowd', [folder, '25'])))
    for (const reader of readers) await reader.line()
    for (const reader of readers) reader.tell('go')
    const write = await writer.fails('put', 7000)
    expect([write.error, write.ms < LIMIT_MS]).toEqual([undefined, true])
    for (const reader of readers) expect(JSON.parse(await reader.line())).toEqual(['newest 1'])
  })
})

describeWith(['Linux', 'loop mount'], 'a frozen file system', () => {
  it('does not hold up the event loop, and is used again when it thaws', async () => {
    const disk = smallDisk('ext4', 64)
    await using program = await startJournal(disk.folder, 'thread', disk.wrapper)
    await program.ask('append', 7000)
    const folder = disk.seenFrom(program.child.pid)
    spawnSync('fsfreeze', ['--freeze', folder])
    try {
      await program.ask('delay')
      const { error, ms } = await program.fails('append', 7000)
      expect(error).toMatch(/ within 4 s\. /)
      expect(ms).toBeLessThan(LIMIT_MS)
      expect(await program.ask('delay')).toBeLessThan(250)
    } finally {
      spawnSync('fsfreeze', ['--unfreeze', folder])
    }
    await expect.poll(() => program.ask('late'), { timeout: 5000 }).toEqual([2])
    expect(await program.ask('append', 7000)).toBe(3)
  })
})
