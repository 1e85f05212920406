import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { expect, it } from 'vitest'
import { emptyFolder } from '../../helpers/context.js'
import { describeWith } from '../../kit/needs.js'
import { DISKS, fillUp, smallDisk, takeSpace } from './disk.js'
import { type Program, startJournal } from './program.js'

const ALMOST_FULL = 'the disk is almost full. Free some space; a running relay then continues by itself'
const FULL = 'the disk is full. Free some space; a running relay then continues by itself'
const ROUNDS = 100

for (const kind of DISKS) {
  describeWith(['Linux', kind === 'tmpfs' ? 'mount' : 'loop mount'], `a full disk: ${kind}`, () => {
    it('refuses deliveries while there is room for all else, and takes them when retention has made room', async () => {
      const disk = smallDisk(kind, 64)
      await using program = await startJournal(disk.folder, 'thread', disk.wrapper)
      const { taken, reason } = await program.ask<{ taken: number; reason: string }>('fill', 7000)
      expect(taken).toBeGreaterThan(1000)
      expect(reason).toBe(refusal(disk.folder, ALMOST_FULL))

      expect(await program.ask('tries', ROUNDS)).toEqual([refusal(disk.folder, ALMOST_FULL), 'done'])
      expect(await program.ask('sweep', 5_000_000)).toBeGreaterThan(taken / 4)
      await continues(program)
      expect(await program.ask('newest')).toBe(taken + 1)
      expect(await program.ask('check')).toEqual(['ok'])
    })

    it('stays up when another program takes the last byte, and continues when that is freed', async () => {
      const disk = smallDisk(kind, 64)
      await using program = await startJournal(disk.folder, 'thread', disk.wrapper)
      const folder = disk.seenFrom(program.child.pid)
      for (let n = 1; n <= 20; n++) expect(await program.ask('append', 7000)).toBe(n)
      const ballast = takeSpace(folder, 0)
      fillUp(folder)

      const ends = await program.ask('tries', ROUNDS)
      expect(ends).toContain(refusal(disk.folder, FULL))
      expect(ends).toEqual(
        expect.arrayContaining([expect.stringMatching(/^(?:done|storage: .* is (?:almost )?full\. .*)$/)]),
      )
      expect(await program.ask('newest')).toBe(20)
      rmSync(ballast)
      await continues(program)
      expect(await program.ask('tries', 10)).toEqual(['done'])
      expect(await program.ask('check')).toEqual(['ok'])
    })
  })
}

// Raising the limit of another process takes Linux' prlimit.
describeWith('Linux', 'a file that may not grow', () => {
  it('refuses what is too much for it, and takes it when it may grow again', async () => {
    const folder = emptyFolder()
    /** No file of the process may grow beyond 2 MiB, in the 512-byte blocks that POSIX counts. The limit can be raised again. */
    const wrapper = ['sh', '-c', 'ulimit -S -f 4096; exec "$@"', 'sh']
    await using program = await startJournal(folder, 'thread', wrapper)
    const { taken } = await program.ask<{ taken: number }>('fill', 50_000)
    const ends = await program.ask<string[]>('tries', ROUNDS)
    expect(ends.filter((end) => end !== 'done' && !end.startsWith('storage: The database'))).toEqual([])
    expect(await program.ask('check')).toEqual(['ok'])

    spawnSync('prlimit', ['--pid', String(program.child.pid), '--fsize=unlimited'])
    const before = await program.ask<number>('newest')
    expect(before).toBeGreaterThanOrEqual(taken)
    expect(await program.ask('append', 50_000)).toBe(before + 1)
  })
})

function refusal(folder: string, reason: string): string {
  return `storage: The database ${folder}/relay.db cannot be used: ${reason}`
}

/** Waits until a delivery is taken: how much room there is is looked up once a second. */
async function continues(program: Program): Promise<void> {
  const taken = async (): Promise<unknown> => (await program.fails('append', 7000)).error
  await expect.poll(taken, { timeout: 3000 }).toBeUndefined()
}
