import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { readOnly } from '../kit/disk.js'
import { describeWith } from '../kit/needs.js'
import { type Ended, start } from '../kit/run.js'
import { commandNames } from '../outside/help-pages.js'

// Whatever is wrong before the program runs ends the process once, with one line and a code.

/** How the built program ended; every test awaits the end, so a process that hangs fails it. */
async function ended(argv: readonly string[], over: Parameters<typeof start>[1]): Promise<Ended> {
  await using running = start(argv, { built: true, ...over })
  return await running.ended
}

/** Those that print without looking at any folder. */
const ANYWHERE = new Set(['completion', 'help', 'version'])
/** Whose failures are answers to the client of an agent. */
const PROTOCOL = new Set(['mcp'])

describe('in a working folder that was removed', () => {
  it('every command ends with one line, in words and as JSON', async () => {
    const cwd = emptyFolder()
    const gone = path.join(cwd, 'gone')
    const text = 'The working folder has been removed. Change to another one, for example with cd ~'
    const ways = (await commandNames()).filter((name) => !ANYWHERE.has(name) && !PROTOCOL.has(name))
    expect(ways.length).toBeGreaterThan(20)
    for (const name of ways) {
      const argv = ARGUMENTS[name] ?? [name]
      for (const [flags, err] of [
        [[], `error: ${text}\n`],
        [['--json'], `${JSON.stringify({ v: 1, type: 'error', code: 'usage', error: text })}\n`],
      ] as const) {
        mkdirSync(gone)
        const wrapper = ['sh', '-c', `cd ${gone} && rmdir ${gone} && exec "$@"`, 'sh']
        expect([name, await ended([...argv, ...flags], { cwd, wrapper })]).toEqual([
          name,
          { code: 2, signal: null, out: '', err },
        ])
      }
    }
  })

  it.each(['--help', '--version', 'completion bash'])('relay %s still prints', async (line) => {
    const cwd = emptyFolder()
    const gone = path.join(cwd, 'gone')
    mkdirSync(gone)
    const wrapper = ['sh', '-c', `cd ${gone} && rmdir ${gone} && exec "$@"`, 'sh']
    expect(await ended(line.split(' '), { cwd, wrapper })).toMatchObject({ code: 0, err: '' })
  })

  /** The command lines of commands that need more than their name. */
  const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
    comment: ['comment', 'octo/demo#1', 'hello'],
    config: ['config'],
    export: ['export', 'last'],
    hook: ['hook', 'list'],
    merge: ['merge', 'octo/demo#1'],
    react: ['react', 'octo/demo#1', '+1'],
    replay: ['replay', 'last'],
    reset: ['reset', '--yes'],
    show: ['show', 'last'],
    skip: ['skip', 'last'],
    source: ['source', 'list'],
    trigger: ['trigger', 'push'],
    verify: ['verify', 'last'],
    wait: ['wait', 'push'],
  }
})

describeWith('root', 'for a user without a home folder', () => {
  const wrapper = ['setpriv', '--reuid=12345', '--regid=12345', '--clear-groups', 'env', '-u', 'HOME']

  it('says what to set, in one line', async () => {
    const text =
      'Your home folder is not known: HOME is not set, and user 12345 is not in the password file. Set HOME or RELAY_HOME to a folder that you can write to'
    const bare = [...wrapper, '-u', 'RELAY_HOME']
    expect(await ended(['log'], { wrapper: bare })).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: `error: ${text}\n`,
    })
  })

  it('works in the folder of RELAY_HOME', async () => {
    const home = emptyFolder()
    chownSync(home, 12_345, 12_345)
    const bare = [...wrapper, `RELAY_HOME=${home}`]
    const none = 'error: Profile default has no journal yet. relay serve creates it\n'
    expect(await ended(['log'], { cwd: '/', wrapper: bare })).toEqual({
      code: 6,
      signal: null,
      out: '',
      err: none,
    })
  })
})

it('on a Node that is too old, it says which one it needs before it loads anything', async () => {
  const folder = emptyFolder()
  const old = path.join(folder, 'old.cjs')
  writeFileSync(old, 'Object.defineProperty(process.versions, "node", { value: "18.20.8" })')
  for (const argv of [['log'], ['--help'], ['doctor'], ['--version'], []])
    expect(await ended(argv, { env: { NODE_OPTIONS: `--require=${old}` } })).toEqual({
      code: 1,
      signal: null,
      out: '',
      err: 'error: relay needs Node 20.18.1 or newer; this is 18.20.8\n',
    })
})

it('a defect while the program is loaded ends it with one line', async () => {
  const folder = emptyFolder()
  const broken = path.join(folder, 'broken.cjs')
  // As a library does that reads the system while it is loaded.
  writeFileSync(
    broken,
    'require("node:os").tmpdir = () => { throw new Error("no folder for temporary files") }',
  )
  const ran = await ended(['log'], { env: { NODE_OPTIONS: `--require=${broken}` } })
  expect(ran).toEqual({
    code: 1,
    signal: null,
    out: '',
    err: 'error: relay cannot start: no folder for temporary files\n',
  })
})

it.each([['<&-'], ['>&-'], ['2>&-']])(
  'with a standard stream closed (%s) it ends as usual',
  async (closed) => {
    const wrapper = ['sh', '-c', `exec "$@" ${closed}`, 'sh']
    expect(await ended(['log'], { wrapper })).toMatchObject({ code: 6, signal: null })
  },
)

describeWith(['Linux', 'mount'], 'with a read-only home folder', () => {
  const text = 'cannot be made: the file system is read-only'

  it('serve says in one line what it lacks, and relay doctor says the same', async () => {
    const home = emptyFolder()
    const over = { wrapper: readOnly(home), env: { HOME: home, RELAY_HOME: undefined } }
    const advice = 'Set RELAY_HOME to a folder that you can write to'
    expect(await ended(['serve', '--sandbox', '--port', '0', '--sandbox-port', '0'], over)).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: `error: The folder ${home}/.local ${text}. ${advice}\n`,
    })
    const { out } = await ended(['doctor', '--json'], over)
    const [machine] = JSON.parse(out.split('\n')[0] ?? '').checks
    expect(machine).toMatchObject({ state: 'fail', text: expect.stringContaining(text) })
  })

  it('relay works where RELAY_HOME is a folder elsewhere', async () => {
    const home = emptyFolder()
    const over = { wrapper: readOnly(home), env: { HOME: home, RELAY_HOME: emptyFolder() } }
    await using relay = start(['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json'], over)
    await relay.url()
    for (const argv of [['trigger', 'push'], ['log']])
      expect(await ended([...argv, '--profile', 'sandbox'], over)).toMatchObject({
        code: 0,
        err: expect.not.stringContaining('error'),
      })
  })
})
