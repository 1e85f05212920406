import { expect, it } from 'vitest'
import { emptyFolder } from '../../helpers/context.js'
import { describeWith } from '../../kit/needs.js'
import { illDisk } from './ill-disk.js'
import { startJournal } from './program.js'

/** Longer than any limit, in milliseconds. */
const HUNG = 'slow 60000'

describeWith(['Linux', 'gcc'], 'a slow disk', () => {
  it('does not hold up the event loop', async () => {
    const disk = illDisk()
    await using program = await startJournal(emptyFolder(), 'thread', disk.wrapper)
    await program.ask('append', 7000)
    disk.set('slow 1000')
    await program.ask('delay')
    const { error, ms } = await program.fails('append', 7000)
    expect([error, ms > 1000]).toEqual([undefined, true])
    expect(await program.ask('delay')).toBeLessThan(250)
  })

  // Those that mostly wait do so together.
  it.concurrent('fails calls after 4 s when it hangs, bounds what waits, and says what was stored later', async ({
    expect,
  }) => {
    const disk = illDisk()
    const folder = emptyFolder()
    await using program = await startJournal(folder, 'thread', disk.wrapper)
    await program.ask('append', 7000)
    disk.set(HUNG)
    const crowd = await program.ask<{ ends: Record<string, number>; megabytes: number }>('crowd', 64)
    const cannot = `storage: The database ${folder}/relay.db cannot be used:`
    expect(crowd.ends).toEqual({
      [`${cannot} it did not answer within 4 s. Check the disk`]: expect.any(Number),
      [`${cannot} too much waits for the disk. Try again later`]: expect.any(Number),
    })
    expect(crowd.megabytes).toBeLessThan(400)

    disk.set('none')
    await expect.poll(async () => (await program.fails('newest')).error, { timeout: 8000 }).toBeUndefined()
    const newest = await program.ask<number>('newest')
    // At most 64 MiB waited.
    expect(newest).toBeGreaterThan(1)
    expect(newest).toBeLessThanOrEqual(68)
    expect(await program.ask('late')).toEqual(Array.from({ length: newest - 1 }, (_, i) => i + 2))
    expect(await program.ask('append', 7000)).toBe(newest + 1)
    expect(await program.ask('check')).toEqual(['ok'])
  })

  it.concurrent('is given up after 5 s on closing', async () => {
    const disk = illDisk()
    const folder = emptyFolder()
    await using program = await startJournal(folder, 'thread', disk.wrapper)
    disk.set(HUNG)
    expect((await program.fails('append', 7000)).error).toMatch(/ within 4 s\. /)
    const { error, ms } = await program.fails('close')
    expect(error).toBe(
      `storage: The database ${folder}/relay.db cannot be used: it did not answer within 5 s. Check the disk`,
    )
    expect(ms).toBeLessThan(5500)
    // The kernel lets go of the thread.
    disk.set('none')
    expect(await program.end()).toEqual({ code: 0, stderr: '' })
  })
})

describeWith(['Linux', 'gcc'], 'a disk with errors', () => {
  it.concurrent.each(['here', 'thread'] as const)(
    'is named, and used again when it is well: %s',
    async (where) => {
      const disk = illDisk()
      const folder = emptyFolder()
      await using program = await startJournal(folder, where, disk.wrapper)
      await program.ask('append', 7000)
      disk.set('error relay.db-wal')
      expect(await program.ask('tries', 100)).toEqual([
        `storage: The database ${folder}/relay.db cannot be used: the disk is full or reported an error. Check its free space, the disk and the system log`,
      ])
      expect(await program.ask('newest')).toBe(1)
      disk.set('none')
      expect(await program.ask('tries', 10)).toEqual(['done'])
      expect(await program.ask('newest')).toBe(11)
      expect(await program.ask('check')).toEqual(['ok'])
    },
  )

  it.concurrent('does not keep what is in the log from being used, nor from reaching the database later', async () => {
    const disk = illDisk()
    const folder = emptyFolder()
    {
      await using program = await startJournal(folder, 'thread', disk.wrapper)
      disk.set('error relay.db')
      // More than the log holds before it is copied.
      for (let n = 1; n <= 30; n++) expect(await program.ask('append', 1_000_000)).toBe(n)
      await program.ask('close')
      expect(await program.end()).toEqual({ code: 0, stderr: '' })
    }
    disk.set('none')
    await using program = await startJournal(folder, 'thread')
    expect(await program.ask('newest')).toBe(30)
    expect(await program.ask('append', 7000)).toBe(31)
    expect(await program.ask('check')).toEqual(['ok'])
  })
})
