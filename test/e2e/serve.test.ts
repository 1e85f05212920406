import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { listen } from '../../src/http/listen.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { serve } from '../helpers/serve.js'
import { signIn } from '../helpers/sign-in.js'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'

const SANDBOX = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
const SERVE = ['serve', '--port', '0', '--json']
describe('relay serve', () => {
  it('runs the whole service with its sandbox, and stops cleanly', async () => {
    await using program = new Program(SANDBOX)
    const url = await program.url()
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    expect(await program.object({ event: 'ping' })).toMatchObject({
      v: 1,
      type: 'delivery',
      n: 1,
      provider: 'sandbox',
    })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain(`address      ${url}`)
    expect(err).toMatch(/#1 +ping +octo\/demo/)
    expect(err).not.toContain('Stopping')
  })

  it('loads only what an idle instance uses', async () => {
    const LOADED = path.join(emptyFolder(), 'loaded')
    const NODE_OPTIONS = `--import ${path.resolve('test/helpers/loaded.mjs')}`
    await using program = new Program(SERVE, { RELAY_WEBHOOK_SECRET: SECRET, LOADED, NODE_OPTIONS })
    await program.url()
    await program.stop()
    const files = readFileSync(LOADED, 'utf8').trim().split('\n')
    const sources = files.flatMap(sourcesOf).map((file) => path.relative('.', file))
    expect(sources).toContain('src/serve/serve.ts')
    const lazy =
      /^src\/(?:hooks|inspector|sandbox|setup|tunnel)\/|^node_modules\/(?:oauth4webapi|open|pg|undici)\//
    expect(sources.filter((file) => lazy.test(file)).toSorted()).toEqual([
      'src/inspector/activity.ts',
      'src/sandbox/client.ts',
      'src/setup/record.ts',
      'src/tunnel/state.ts',
    ])
    const native = files.filter((file) => sourcesOf(file).includes(path.resolve('src/store/sqlite.ts')))
    expect(native.map((file) => path.basename(file))).toEqual(['sqlite-thread.js'])
  })

  it('says at Ctrl-C what is still waiting, and for which target', async () => {
    const down = await closedPort()
    await using program = new Program([...SERVE, '--forward', `app=${down}`], {
      RELAY_WEBHOOK_SECRET: SECRET,
    })
    const url = await program.url()
    for (const id of ['a', 'b'])
      expect(await post(`${url}/webhook`, githubDelivery({ id }))).toMatchObject({ status: 200 })
    await program.object({ type: 'target', state: 'down' })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain('\nStopping. Still waiting: 2 for app; sent at the next start.\n')
  })

  it('says what is wrong with a setting, exit 2', async () => {
    expect(await relay(['serve', '--port', '70000'])).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: 'error: --port: must be a whole number from 0 to 65535\n',
    })
  })

  it.each([[[]], [['--quiet']]])(
    'says in one line why a delivery is refused, and nothing of it to the sender %j',
    async (flags) => {
      await using program = serve(emptyFolder(), [], flags)
      const url = `${await program.url()}/webhook`
      const refused = { status: 401, type: 'application/json', body: '{"error":"Invalid signature"}' }
      expect(await post(url, githubDelivery({ id: 'd-1', secret: `${SECRET}\n` }))).toEqual(refused)
      const line =
        "warning: POST /webhook was answered 401: the sender's secret ends in a newline, relay's does not (unproved: event push, delivery d-1; relay show refused:1)\n"
      await program.says(line)
      expect(await post(url, githubDelivery())).toMatchObject({ status: 200 })
      await program.object({ type: 'delivery', n: 1 })
      const { err } = await program.stop()
      const lines = err.split('\n').filter((text) => /warning|refused|\b401\b|Invalid/.test(text))
      expect(lines.map((text) => text.replace(/^\d\d:\d\d:\d\d {2}/, 'time '))).toEqual([
        `time ${line.trimEnd()}`,
      ])
    },
  )

  it('returns browsers to the base URL as it was written', async () => {
    const base = 'http://localhost:3000/done/?to=/#/'
    await using program = new Program([...SANDBOX, '--base-url', base])
    const { location } = await signIn(await program.url(), 'ada')
    expect(location).toBe('http://localhost:3000/done/?to=/&auth=success&userId=ada#/')
  })

  it('warns of an address that others reach', async () => {
    await using program = new Program([...SERVE, '--host', '0.0.0.0'])
    await program.url()
    expect((await program.stop()).err).toContain(
      'warning: --host 0.0.0.0: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password',
    )
  })

  it('says that the port is in use, exit 1', async () => {
    const other = await listen(() => new Response(), { host: '127.0.0.1', port: 0, log: silentLog })
    const { code, out, err } = await relay(['serve', '--port', String(other.port)])
    await other.close()
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(`Port ${other.port} is in use`)
    expect(err).toContain('--port')
  })

  it('leaves a served profile alone, exit 1, and takes over what a killed one left', async () => {
    const home = { RELAY_HOME: emptyFolder() }
    await using first = new Program(SERVE, home)
    const url = await first.url()
    const second = await relay(SERVE, home)
    expect({ code: second.code, out: second.out }).toEqual({ code: 1, out: '' })
    expect(second.err).toContain(url)
    expect(second.err).toContain(String(first.pid))
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')

    await first.stop('SIGKILL')
    await using third = new Program(SERVE, home)
    expect(await third.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await third.stop()).code).toBe(0)
  })
})

/** The files that a file of the program was made from; a file of a package is its own source. */
function sourcesOf(file: string): readonly string[] {
  if (!existsSync(`${file}.map`) || file.includes('node_modules')) return [file]
  const { sources }: { readonly sources: readonly string[] } = JSON.parse(readFileSync(`${file}.map`, 'utf8'))
  return sources.map((source) => path.resolve(path.dirname(file), source))
}
