import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { canary } from './canary.js'
import { emptyFolder } from './folder.js'
import { describeWith } from './needs.js'
import { isAlive } from './processes.js'

const KIT = path.resolve('test/kit')

/** Runs these test files in a run of their own, where `note` keeps a value under a name; what was kept, and standard error. */
async function runOfItsOwn(files: Readonly<Record<string, string>>) {
  const folder = emptyFolder()
  // The database runs as another user.
  chmodSync(folder, 0o711)
  const test = {
    globalSetup: `${KIT}/setup.ts`,
    setupFiles: `${KIT}/worker.ts`,
    globals: true,
    testTimeout: 30_000,
  }
  writeFileSync(path.join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify({ test })}`)
  const note = `const note = async (name, value) =>
    (await import('node:fs')).writeFileSync(${JSON.stringify(folder)} + '/' + name, JSON.stringify(value))\n`
  for (const [name, test] of Object.entries(files)) writeFileSync(path.join(folder, name), note + test)
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder }
  const argv = [path.resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', folder]
  const { stderr } = await promisify(execFile)(process.execPath, argv, { env })
  return { stderr, textOf: (name: string) => readFileSync(path.join(folder, name), 'utf8') }
}

describeWith(['postgres', 'Linux'], 'a run', () => {
  it('starts one server for all workers, and nothing that is not asked for; all of it goes with the run', async () => {
    const test = (name: string) => `
      import { part } from '${KIT}/parts.ts'
      import { childrenOf, readProc } from '${KIT}/processes.ts'
      it('asks', async () => {
        const [port, again] = await Promise.all([part('postgres'), part('postgres')])
        const programs = childrenOf(process.ppid).map((pid) => [pid, readProc(pid, 'cmdline')])
        await note('${name}', { port, again, worker: process.pid, programs, folder: process.env.TMPDIR })
      })`
    interface Noted {
      readonly port: number
      readonly again: number
      readonly worker: number
      readonly folder: string
      readonly programs: readonly (readonly [pid: number, command: string])[]
    }
    const { textOf } = await runOfItsOwn({ 'one.test.ts': test('one'), 'two.test.ts': test('two') })
    const [one, two]: readonly [Noted, Noted] = [JSON.parse(textOf('one')), JSON.parse(textOf('two'))]
    const { port, folder } = one
    expect([one, two]).toEqual([
      { ...one, port, again: port, folder },
      { ...two, port, again: port, folder },
    ])
    expect(one.worker).not.toBe(two.worker)
    const commands = one.programs.map(([, command]) => path.basename(command.split('\0')[0] ?? ''))
    expect(commands.filter((command) => command === 'postgres')).toHaveLength(1)
    expect(commands.filter((command) => /dbus|keyring|chrom/.test(command))).toEqual([])
    await expect.poll(() => one.programs.filter(([pid]) => isAlive(pid))).toEqual([])
    await expect.poll(() => existsSync(folder)).toBe(false)
  })

  it('says how many tests were left out, from the body of a test or before each', async () => {
    const { stderr, textOf } = await runOfItsOwn({
      'one.test.ts': `
        import { leaveOut } from '${KIT}/needs.ts'
        import { childrenOf, readProc } from '${KIT}/processes.ts'
        it('is left out', async () => {
          const commands = childrenOf(process.ppid).map((pid) => readProc(pid, 'cmdline'))
          await note('commands', commands)
          leaveOut('it injects a clock')
          throw new Error('the test has gone on')
        })
        describe('a suite', () => {
          beforeEach(() => leaveOut('it injects chance'))
          it.each([1, 2])('is left out %i', () => expect(1).toBe(2))
        })
        it('is not', async () => note('ran', true))`,
    })
    expect(textOf('ran')).toBe('true')
    expect(stderr).toBe(
      'left out: 3 tests that inject a clock, a limit, chance or a storage fault (RELAY_TEST_BUILT=1)\n',
    )
    expect(textOf('commands')).not.toMatch(/postgres|dbus|keyring|chrom/)
  })
})

describe('a canary', () => {
  const SECRET = 'canary <secret> of 24'
  const searched = (text: string, where = 'output') => {
    const one = canary()
    one.secret('token', SECRET)
    one.text(where, text)
    return () => one.check(['token'])
  }

  it.each([
    ['as it is', `Bearer ${SECRET}.`],
    ['in an address', `/?a=${encodeURIComponent(SECRET)}`],
    ['in a form', String(new URLSearchParams({ token: SECRET }))],
    ['in JSON', JSON.stringify({ token: SECRET })],
  ])('finds a secret %s', (_, text) => {
    expect(searched('all is well')).not.toThrow()
    expect(searched(text)).toThrow('a secret is where it may not be: token in output')
  })

  it('fails where nothing was searched', () => {
    expect(() => canary().check([])).toThrow('nothing was searched: 0 secrets, 0 places')
    expect(searched('\n')).toThrow('empty: output')
    const one = canary()
    expect(() => one.secret('code', 'short')).toThrow('no secret to look for: code has 5 characters')
    one.secret('token', SECRET)
    one.text('output', 'all is well')
    expect(() => one.check(['token', 'key'])).toThrow('the secrets to look for are token, not key, token')
  })
})
