import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { injected, readOnly } from '../kit/disk.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'
import { type Ended, start } from '../kit/run.js'

// A file system that SQLite cannot use is named as such: by every command that opens the data, and each kind in its own words.

const SERVE = ['serve', '--port', '0']
/** Commands that open the data of a profile. */
const COMMANDS = [SERVE, ['log'], ['whoami'], ['source', 'list'], ['show', '1'], ['doctor']]
const FEW = [SERVE, ['log'], ['doctor']]

const files = (here: Place, ...names: readonly string[]): readonly string[] =>
  names.map((name) => path.join(here.home, 'default', name))

type Wrapper = (here: Place) => readonly string[]
type Kind = readonly [wrapper: Wrapper, says: RegExp, commands: readonly (readonly string[])[]]

const unlocked =
  (code: string): Wrapper =>
  (here) =>
    injected('fcntl', `error=${code}`, ...files(here, 'serve.lock', 'relay.db', 'relay.db-shm'))

/** What the file system cannot do, and the sentence about it. */
const KINDS: Readonly<Record<string, Kind>> = {
  'no locks (ENOLCK)': [unlocked('ENOLCK'), /its file system has no POSIX locks/, COMMANDS],
  'no locks (ENOSYS)': [unlocked('ENOSYS'), /its file system has no POSIX locks/, FEW],
  'no locks (EOPNOTSUPP)': [unlocked('EOPNOTSUPP'), /its file system has no POSIX locks/, FEW],
  'no locks (EPERM)': [unlocked('EPERM'), /its file system has no POSIX locks/, FEW],
  'no shared memory (ENODEV)': [
    (here) => injected('mmap', 'error=ENODEV', ...files(here, 'relay.db-shm')),
    /its file system has no memory that processes share/,
    COMMANDS,
  ],
  'no shared memory (EINVAL)': [
    (here) => injected('mmap', 'error=EINVAL', ...files(here, 'relay.db-shm')),
    /its file system has no memory that processes share/,
    FEW,
  ],
  'no right to write': [(here) => readOnly(here.home), /its file system is read-only/, [['doctor'], ['log']]],
  'a quota that is used up': [
    () => injected('pwrite64', 'error=EDQUOT'),
    /your disk quota is used up\. Free some space, or have the quota raised/,
    FEW,
  ],
  'no space': [() => injected('pwrite64', 'error=ENOSPC'), /the disk is full\. Free some space/, FEW],
}

async function ended(here: Place, argv: readonly string[], wrapper: readonly string[]): Promise<Ended> {
  await using program = here.startWith({ wrapper }, ...argv)
  return await program.ended
}

describeWith(['Linux', 'strace', 'mount'], 'a file system with', () => {
  const rows = Object.entries(KINDS).flatMap(([name, [wrapper, says, commands]]) =>
    commands.map((argv) => [name, argv.join(' '), argv, wrapper, says] as const),
  )

  it.each(rows)('%s: relay %s says so', async (_, __, argv, wrapper, says) => {
    await using here = await place({ host: 'none' })
    await (await here.serve()).stop()
    const { code, out, err } = await ended(here, argv, wrapper(here))
    expect(`${out}${err}`).toMatch(says)
    expect(`${out}${err}`).not.toMatch(/already served|Stop it|Internal error|does not end/)
    expect([1, 2]).toContain(code)
    expect(readdirSync(path.join(here.home, 'default')).filter((name) => name.endsWith('.draft'))).toEqual([])
  })

  it('no locks, where there is no profile yet: relay serve says so', async () => {
    await using here = await place({ host: 'none' })
    const { code, err } = await ended(here, SERVE, unlocked('ENOLCK')(here))
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^error: .*its file system has no POSIX locks.*\n$/),
    ])
  })

  it.each([
    ['creating a file', 'openat', 'relay.db'],
    ['creating the lock', 'openat', 'serve.lock'],
  ])('a quota that is used up when %s', async (_, call, name) => {
    await using here = await place({ host: 'none' })
    mkdirSync(path.join(here.home, 'default'), { mode: 0o700 })
    const { err } = await ended(here, SERVE, injected(call, 'error=EDQUOT', ...files(here, name)))
    expect(err).toMatch(/your disk quota is used up/)
  })

  it.each([
    // `man 2 statfs`, in the order of the bytes in memory.
    ['01021997', /^x {3}machine .* network file system \(9P\)/m],
    ['00006969', /^x {3}machine .* network file system \(NFS\)/m],
    ['58465342', /^ok {2}machine .*\(XFS, a local disk\)/m],
    ['01021994', /^ok {2}machine .*\(tmpfs, which is empty after a restart\)/m],
    ['65735546', /^ok {2}machine .*\(FUSE, which works only where it has POSIX locks and shared memory\)/m],
    ['12345678', /^ok {2}machine .*\(a file system of type 0x12345678\)/m],
  ])('the number 0x%s is named by relay doctor', async (type, line) => {
    await using here = await place({ host: 'none' })
    await (await here.serve()).stop()
    const bytes = Buffer.from(Buffer.from(type, 'hex').toReversed()).toString('hex')
    const wrapper = injected('statfs', `poke_exit=@arg2=${bytes}`)
    await using program = start(['doctor'], { wrapper, env: here.env })
    expect((await program.ended).out.replaceAll(/\n +(?!fix)/g, ' ')).toMatch(line)
  })
})

describeWith(['Linux', 'strace'], 'a Windows drive of WSL', () => {
  /** Starts a program for which every file system looks like 9P. */
  const on9p = () => injected('statfs', 'poke_exit=@arg2=97190201')
  const ADVICE =
    /If chmod changes nothing there, .*: move it to the Linux file system, .*\/etc\/wsl\.conf, and run wsl\.exe --shutdown/

  it('has the advice that works there, wherever chmod is advised', async () => {
    await using here = await place({ host: 'none' })
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'relay.json'), '{}')
    writeFileSync(path.join(cwd, '.env'), '')
    for (const name of ['relay.json', '.env']) chmodSync(path.join(cwd, name), 0o777)
    const home = path.join(emptyFolder(), 'home')
    mkdirSync(home)
    chmodSync(home, 0o777)
    await using config = here.startWith({ wrapper: on9p(), cwd }, 'config')
    const warnings = (await config.ended).err.trim().split('\n')
    expect(warnings).toEqual([expect.stringMatching(ADVICE), expect.stringMatching(ADVICE)])
    await using serve = here.startWith({ wrapper: on9p(), env: { RELAY_HOME: home } }, ...SERVE)
    expect(await serve.ended).toMatchObject({ code: 2, err: expect.stringMatching(ADVICE) })
    // Elsewhere, chmod is enough.
    expect((await here.runWith({ env: { RELAY_HOME: home } }, ...SERVE)).err).not.toMatch(/wsl/i)
  })

  it('is not used for the data where chmod leaves it open', async () => {
    await using here = await place({ host: 'none' })
    mkdirSync(path.join(here.home, 'default'), { mode: 0o755 })
    const wrapper = injected('chmod', 'retval=0')
    await using serve = here.startWith({ wrapper }, ...SERVE)
    const { code, err } = await serve.ended
    expect([code, err]).toEqual([2, expect.stringMatching(ADVICE)])
    expect(err).toMatch(/^error: relay does not use \S+: it is open to others, and chmod does not close it\./)
  })
})
