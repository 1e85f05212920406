import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import path from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { newPage, overflow, tabTo, violations } from './browser.js'
import { fillUp, hold, limited, slowDown, smallDisk, unlimit } from './disk.js'
import { emptyFolder, type Env } from './folder.js'
import { haproxy } from './haproxy.js'
import { keyring, ownKeyring, startSession, startSilentSession } from './keyring.js'
import { describeWith } from './needs.js'
import { Pane } from './pane.js'
import { closedPort, portOf } from './ports.js'
import { database, ownServer, PASSWORD, pgbouncer } from './postgres.js'
import { isAlive } from './processes.js'
import { receiver } from './receiver.js'
import { run, start } from './run.js'
import { fleet, idsOf, type Injury, outcome, senders } from './service.js'

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

describe('a closed port', () => {
  it('is another one each time, and nothing listens there', async () => {
    const ports = [await closedPort(), await closedPort()]
    expect(new Set(ports).size).toBe(2)
    for (const port of ports) await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow('fetch failed')
  })
})

function withPassword(store: string): string {
  return store.replace('@', `:${encodeURIComponent(PASSWORD)}@`)
}

describeWith('postgres', 'a database', () => {
  it('is empty, apart from others, dumped, and closed afterwards', async () => {
    let store = ''
    {
      await using one = await database()
      await using other = await database()
      await one.run('CREATE TABLE words (word text)')
      await one.run(`INSERT INTO words VALUES ('hello')`)
      expect(await one.dump()).toContain('hello')
      expect(await other.dump()).not.toContain('words')
      await using relay = start(['serve', '--port', '0', '--json'], { env: one.env })
      await relay.url()
      store = one.store
      await relay.stop()
    }
    const client = new Client(withPassword(store))
    await expect(client.connect()).rejects.toThrow('is not currently accepting connections')
  })

  it('of a server of its own outlives a crash', async () => {
    await using server = await ownServer({ work_mem: '1MB' })
    await server.run('CREATE TABLE words (word text)')
    await server.stop('SIGQUIT')
    await expect(server.run('SELECT 1')).rejects.toThrow('ECONNREFUSED')
    await server.start()
    expect((await server.run('SELECT count(*)::int AS count FROM words')).rows).toEqual([{ count: 0 }])
    expect((await server.run('SHOW work_mem')).rows).toEqual([{ work_mem: '1MB' }])
    expect(isAlive(server.pid)).toBe(true)
  })
})

describeWith(['postgres', 'pgbouncer'], 'pgbouncer', () => {
  it('hands on to the server', async () => {
    await using own = await database()
    await using pooler = await pgbouncer(own, { pool_mode: 'session' })
    const client = new Client(withPassword(own.store.replace(String(own.port), String(pooler.port))))
    await client.connect()
    expect((await client.query('SELECT current_database() AS name')).rows).toEqual([{ name: own.name }])
    await client.end()
  })

  it('that cannot start says why', async () => {
    await using own = await database()
    await expect(pgbouncer(own, { pool_mode: 'none' })).rejects.toThrow(/pgbouncer: .*\n.*pool_mode/s)
  })
})

/** What keytar says, in a process of this session. */
async function keytar({ env }: { readonly env: Env }, call: string): Promise<string> {
  const script = `require('keytar').${call}.then((found) => console.log(found), (error) => console.log(error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], { env: { ...env } })
  return stdout.trim()
}

describeWith('keyring', 'a keyring', () => {
  it('is one for the run', async () => {
    await keytar(await keyring(), `setPassword('kit', 'account', 'word')`)
    expect(await keytar(await keyring(), `getPassword('kit', 'account')`)).toBe('word')
  })

  it('of its own can be locked and unlocked', async () => {
    await using own = await ownKeyring()
    await keytar(own, `setPassword('kit', 'account', 'other')`)
    await own.lock()
    expect(await keytar(own, `getPassword('kit', 'account')`)).toBe('null')
    await own.unlock()
    expect(await keytar(own, `getPassword('kit', 'account')`)).toBe('other')
  })

  it('is not there in a session without services, and never answers in a silent one', async () => {
    await using session = await startSession()
    expect(await keytar(session, `getPassword('kit', 'account')`)).toContain('was not provided')
    const silent = await startSilentSession()
    const asking = keytar(silent, `getPassword('kit', 'account')`)
    await silent.reached
    await silent[Symbol.asyncDispose]()
    expect(await asking).toMatch(/Connection reset|Broken pipe/)
  })
})

describeWith('chromium', 'a tab', () => {
  it('knows nothing of others, and tells its faults', async () => {
    const page = `<html lang="en"><title>A page</title><body style="margin: 0"><main><h1>A page</h1>
      <a href="#">one</a> <a href="#">two</a><img src="data:,"><p style="width: 3000px">wide</p></main>
      <script>document.title = document.cookie; document.cookie = 'a=b'; throw new Error('a fault')</script>`
    const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(page))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    for (const _ of [1, 2]) {
      await using tab = await newPage()
      await tab.page.goto(`http://127.0.0.1:${portOf(server)}`)
      expect(await tab.page.title()).toBe('')
      expect(tab.faults).toEqual(['a fault'])
      expect(await violations(tab.page)).toEqual([
        expect.stringMatching(/^document-title/),
        expect.stringMatching(/^image-alt: <img src="data:,">/),
      ])
      expect(await overflow(tab.page)).toEqual([
        expect.stringMatching(/^wider than the window/),
        expect.stringMatching(/^cut off: <p/),
      ])
      await tabTo(tab.page, 'two')
    }
    server.close()
    server.closeAllConnections()
  })
})

describeWith('tmux', 'a pane', () => {
  it('shows what the built program prints, in so many columns', async () => {
    const word = 'x'.repeat(50)
    await using pane = new Pane(`relay --version; echo ${word}; read -r line; echo "<$line>"`, {
      width: 40,
      height: 20,
    })
    await pane.shows(/^\d+\.\d+\.\d+\nx/)
    pane.press('hello', 'Enter')
    await pane.ended()
    expect(pane.text()).toContain(`\n${'x'.repeat(40)}\n${'x'.repeat(10)}\nhello\n<hello>\n`)
    expect(pane.unbroken()).toContain(`\n${word}\n`)
  })
})

describeWith(['Linux', 'strace'], 'a disk', () => {
  it('whose files may not grow takes more again once they may', async () => {
    const folder = emptyFolder()
    const env = { RELAY_HOME: folder, RELAY_PROFILE: 'sandbox' }
    const argv = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
    await using relay = start(argv, { env, wrapper: limited(64 * 1024) })
    unlimit(relay.pid)
    expect(await relay.url()).toContain('http')
  })

  it('that is held or slow lets a writer wait', async () => {
    const env = { RELAY_HOME: emptyFolder(), RELAY_PROFILE: 'sandbox' }
    const argv = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
    await using relay = start(argv, { env, built: true })
    await relay.object({ type: 'delivery', event: 'ping' })
    const trigger = async () => {
      const before = performance.now()
      expect(await run(['trigger', 'push'], { env })).toMatchObject({ code: 0 })
      return performance.now() - before
    }
    {
      await using _ = await slowDown(relay.pid, 0.5)
      expect(await trigger()).toBeGreaterThan(490)
    }
    await using lock = hold(path.join(env.RELAY_HOME, 'sandbox'))
    expect(() => hold(path.join(env.RELAY_HOME, 'sandbox'))).toThrow('database is locked')
    setTimeout(() => lock.release(), 300)
    expect(await trigger()).toBeGreaterThan(290)
  })
})

describeWith(['Linux', 'mount'], 'a small disk', () => {
  it('is filled to the last byte, and freed', async () => {
    const disk = smallDisk(64)
    const env = { RELAY_HOME: disk.folder, RELAY_PROFILE: 'sandbox' }
    const argv = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
    await using relay = start(argv, { env, wrapper: disk.wrapper })
    await relay.object({ type: 'delivery', event: 'ping' })
    const folder = disk.seenFrom(relay.pid)
    expect(existsSync(disk.folder) && existsSync(path.join(disk.folder, 'sandbox'))).toBe(false)
    const ballast = fillUp(folder)
    const write = () => writeFileSync(path.join(folder, 'more'), 'x'.repeat(8192))
    expect(write).toThrow('ENOSPC')
    rmSync(ballast)
    expect(write).not.toThrow()
  })
})

describeWith(['postgres', 'haproxy'], 'a fleet behind a load balancer', () => {
  it('is injured in each way, and what became of its deliveries is known', async () => {
    await using own = await database()
    await using target = await receiver()
    const ports = [await closedPort(), await closedPort()]
    const flags = ['--forward', target.url]
    await using relays = await fleet(own, { size: 2, flags, ports, standstill: 200 })
    await using balancer = await haproxy({ ports })
    await using sending = senders({ count: 4, url: () => balancer.url, pause: 10 })
    await sending.more(20)
    const injuries: readonly Injury[] = ['disconnected', 'stopped', 'ended', 'killed']
    for (const [i, injury] of injuries.entries()) {
      await relays.injure(i % 2, injury)
      await sending.more(20)
    }
    await sending.stop()
    const { targets, ...stored } = await outcome(own, sending.acknowledged, [target])
    expect(stored).toEqual({ lost: [], twice: [] })
    expect(targets).toEqual([{ missing: [], disordered: [], repeats: expect.any(Number) }])
    expect(new Set(idsOf(target))).toEqual(sending.acknowledged)
  }, 60_000)
})
