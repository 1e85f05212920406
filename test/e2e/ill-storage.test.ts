import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { hasDatabase } from '../helpers/has-database.js'
import { type Ended, Program, relay } from '../helpers/program.js'
import { serve } from '../helpers/serve.js'
import { startTarget, type TargetServer } from '../helpers/target.js'
import { illDisk } from '../store/ills/ill-disk.js'

/** No command may take longer, in milliseconds. */
const LIMIT_MS = 5000
/** Nor may an answer that needs no storage. */
const HEALTH_LIMIT_MS = 1000
/** For a whole test, which alone on a machine takes up to 25 s. */
const TEST_LIMIT_MS = 90_000
const HUNG = 'slow 60000'

describeWith(['Linux', 'gcc'], 'relay serve on a disk', () => {
  // They mostly wait.
  it.concurrent.for(['error relay.db-wal', HUNG] as const)(
    'that is ill (%s) answers 503, stays healthy, and forwards again by itself when it is well',
    { timeout: TEST_LIMIT_MS },
    async (illness, { expect }) => {
      const disk = illDisk()
      const home = emptyFolder()
      await using target = await startTarget()
      await using program = serve(home, disk.wrapper, ['--forward', target.url])
      const url = await program.url()
      const send = async (id: string): Promise<number> =>
        (await post(`${url}/webhook`, githubDelivery({ id }))).status
      expect(await send('before')).toBe(200)
      await forwarded(target, program, 1)

      disk.set(illness)
      const refused = Promise.all(['a', 'b'].map(send))
      expect(await health(url)).toEqual({ status: 200, inTime: true })
      expect(await refused).toEqual([503, 503])
      expect(await health(url)).toEqual({ status: 200, inTime: true })
      await answerInTime(home)

      disk.set('none')
      await expect.poll(() => send('a'), { timeout: 10_000 }).toBe(200)
      await expect.poll(() => target.received.length).toBeGreaterThanOrEqual(2)
      expect(await program.stop()).toMatchObject({ code: 0, signal: null })
    },
  )

  it.concurrent(
    'that is ill when it ends: ends itself after its grace period',
    async () => {
      const disk = illDisk()
      await using program = serve(emptyFolder(), disk.wrapper)
      const url = await program.url()
      disk.set(HUNG)
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(503)
      program.child.kill('SIGTERM')
      await program.says('A thread of relay waits for the disk and cannot be stopped')
      expect((await program.ended).signal).toBe('SIGKILL')
    },
    TEST_LIMIT_MS,
  )

  it.concurrent(
    'that stopped in a commit lets a command that reads answer in time, and one that writes be refused in time, or end by Ctrl-C',
    async ({ expect }) => {
      const disk = illDisk()
      const home = emptyFolder()
      await using stopped = serve(home, disk.wrapper)
      const url = await stopped.url()
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
      disk.set(HUNG)
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(503)
      stopped.child.kill('SIGSTOP')

      await answerInTime(home)
      expect(await relay(['serve', '--port', '0'], { RELAY_HOME: home })).toMatchObject({
        code: 1,
        err: expect.stringContaining('another process holds it'),
      })
      await using second = serve(home)
      await expect.poll(() => hasDatabase(second), { timeout: 5000 }).toBe(true)
      second.child.kill('SIGINT')
      const { err } = await second.ended
      expect(err).not.toContain('another process holds it')
      await using follow = new Program(['log', '--follow', '--json'], { RELAY_HOME: home })
      await follow.object({ n: 1 })
      follow.child.kill('SIGINT')
      expect((await follow.ended).code).toBe(0)
      stopped.child.kill('SIGCONT')
    },
    TEST_LIMIT_MS,
  )
})

/** The commands that only read answer within the limit, whatever the storage of the running instance does. */
async function answerInTime(home: string): Promise<void> {
  const timed = async (...args: string[]): Promise<Ended & { inTime: boolean }> => {
    const began = performance.now()
    const ended = await relay(args, { RELAY_HOME: home })
    return { ...ended, inTime: performance.now() - began < LIMIT_MS }
  }
  expect(await timed('log', '--json')).toMatchObject({ code: 0, inTime: true })
  expect(await timed('show', '1', '--json')).toMatchObject({ code: 0, inTime: true })
  expect(await timed('wait', 'release', '--timeout', '1s')).toMatchObject({ code: 7, inTime: true })
  expect(await timed('doctor', '--json')).toMatchObject({ signal: null, inTime: true })
}

async function health(url: string): Promise<{ status: number; inTime: boolean }> {
  const began = performance.now()
  const { status } = await fetch(`${url}/health`)
  return { status, inTime: performance.now() - began < HEALTH_LIMIT_MS }
}

async function forwarded(target: TargetServer, program: Program, count: number): Promise<void> {
  await target.has(count)
  await program.objects({ type: 'attempt' }, count)
}
