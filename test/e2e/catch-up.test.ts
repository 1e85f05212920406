import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { signIn } from '../helpers/sign-in.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTarget, type TargetServer } from '../helpers/target.js'

const REPO = { owner: 'octo', repo: 'demo' }
const SECRET = 'canary-webhook-secret'

/** A sandbox, a signed-in user, and what is needed to start relay with a hook there. */
async function startHost() {
  const sandbox = await startSandbox({ client: CLIENT })
  const home = emptyFolder()
  const env = { RELAY_HOME: home, RELAY_USER: 'ada', RELAY_WEBHOOK_SECRET: SECRET, ...codeHost(sandbox) }
  const args = ['serve', '--port', '0', '--json']
  {
    await using program = new Program(args, env)
    await signIn(await program.url(), 'ada')
    await program.stop()
  }
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  return {
    sandbox,
    home,
    env,
    serve: (...flags: string[]) => new Program([...args, ...flags], env),
    hooks: () => provider.hooks.list(token, REPO),
    relay: (...argv: string[]) => relay(argv, env),
    /** Makes the sandbox send one delivery for each text, in order. */
    async comment(from: number, to: number): Promise<void> {
      for (let n = from; n < to; n++) {
        await provider.comment(token, { ...REPO, issueNumber: 1, body: `comment ${n}` })
        await sandbox.idle()
      }
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}

const textsOf = (target: TargetServer): string[] =>
  target.received.flatMap(({ body }) => JSON.parse(body.toString()).comment?.body ?? [])
/** Waits until the target has so many comments, whatever else it has. */
async function hasTexts(target: TargetServer, count: number): Promise<void> {
  while (textsOf(target).length < count) await target.has(target.received.length + 1)
}
const texts = (count: number): string[] => Array.from({ length: count }, (_, n) => `comment ${n}`)
const limits = (sandbox: TestSandbox): void => {
  const body = JSON.stringify({ message: 'You have exceeded a secondary rate limit.' })
  const limit = { kind: 'answer', status: 403, headers: { 'Retry-After': '1' }, body } as const
  for (const operation of ['deliveries', 'redeliver'] as const) sandbox.faults.next(operation, limit)
  sandbox.faults.next('redeliver', '502')
}

describe('relay serve --hook --catch-up', () => {
  it.each([0, 40])(
    'gets 300 deliveries that were sent while it was killed, and had %i of them before',
    async (had) => {
      await using host = await startHost()
      await using target = await startTarget()
      const flags = ['--hook', 'octo/demo', '--catch-up', '--forward', target.url]
      {
        await using program = host.serve(...flags)
        await program.object({ type: 'hook', state: 'caught up' })
        await host.comment(0, had)
        await program.objects({ type: 'attempt', outcome: 'succeeded' }, had)
        await program.stop('SIGKILL')
      }
      await host.comment(had, 300)
      limits(host.sandbox)
      await using program = host.serve(...flags)
      expect(await program.object({ type: 'hook', state: 'ready' })).toMatchObject({
        created: false,
        repaired: [expect.stringContaining('it led to http://127.0.0.1:')],
      })
      expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({
        missing: 300 - had,
        arrived: 300 - had,
        failed: [],
      })
      await hasTexts(target, 300)
      expect(textsOf(target)).toEqual(texts(300))
      expect((await host.hooks()).map(({ url }) => url)).toEqual([`${await program.url()}/webhook`])
      const { err } = await program.stop()
      expect(err).toContain('the hook of octo/demo stays')
      expect(await host.hooks()).toHaveLength(1)
      const entries = (await journalOf(host.home)).filter(({ event }) => event === 'issue_comment')
      expect(entries.map((entry) => JSON.parse(textOf(entry)).comment.body)).toEqual(texts(300))
      expect(new Set(entries.map(({ verifiedBy }) => verifiedBy))).toEqual(new Set(['current']))
    },
    120_000,
  )
})

describe('relay serve --tunnel --hook --catch-up', () => {
  it('gets what the tunnel took while relay was away, and tests the hook', async () => {
    await using host = await startHost()
    await using smee = await startSmee()
    await using target = await startTarget()
    const flags = ['--tunnel', smee.channel, '--hook', 'octo/demo', '--catch-up', '--forward', target.url]
    {
      await using program = host.serve(...flags)
      expect(await program.object({ type: 'hook', state: 'ready' })).toMatchObject({ url: smee.channel })
      await program.object({ type: 'hook', state: 'caught up' })
      const tested = await host.relay('hook', 'test', 'octo/demo')
      expect(tested).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^ping of octo\/demo arrived: #\d+\n$/),
      })
      await program.stop('SIGKILL')
    }
    await host.comment(0, 3)
    await using program = host.serve(...flags)
    expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({
      missing: 3,
      arrived: 3,
    })
    await hasTexts(target, 3)
    expect(textsOf(target)).toEqual(texts(3))
  })
})

describe('relay serve --hook', () => {
  it('does not disturb another relay with a hook on the same repository', async () => {
    await using host = await startHost()
    await using one = host.serve('--hook', 'octo/demo')
    await one.object({ type: 'hook', state: 'ready' })
    const env = { ...host.env, RELAY_PROFILE: 'other', RELAY_WEBHOOK_SECRET: 'another-secret' }
    await using two = new Program(['serve', '--port', '0', '--json', '--hook', 'octo/demo'], env)
    await signIn(await two.url(), 'ada')
    await two.object({ type: 'hook', state: 'ready' })
    expect(await host.hooks()).toHaveLength(2)
    await host.comment(0, 1)
    for (const program of [one, two]) await program.object({ type: 'delivery', event: 'issue_comment' })
    await two.stop()
    expect((await host.hooks()).map(({ url }) => url)).toEqual([`${await one.url()}/webhook`])
    await host.comment(1, 2)
    await one.objects({ type: 'delivery', event: 'issue_comment' }, 2)
  })

  it.each(['--hook=octo/demo', '--catch-up'])('is refused with --sandbox: %s', async (flag) => {
    expect(await relay(['serve', '--sandbox', flag])).toMatchObject({
      code: 2,
      err: expect.stringContaining("the sandbox's own webhook sends every delivery already"),
    })
  })

  it('shows no secret: not in a process list, a log, an address or the journal', async () => {
    await using host = await startHost()
    const env = { ...host.env, RELAY_DEBUG: '1' }
    const said: string[] = []
    const argvOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const token = (await host.relay('token')).out.trim()
    expect(token).toMatch(/^gho_/)
    await using program = new Program(
      ['serve', '--port', '0', '--json', '--verbose', '--hook', 'octo/demo', '--catch-up'],
      env,
    )
    await program.object({ type: 'hook', state: 'caught up' })
    said.push(argvOf(program.pid))
    host.sandbox.faults.next('hook', '502')
    for (const argv of [
      ['hook', 'list', 'octo/demo'],
      ['hook', 'add', 'octo/demo'],
      ['hook', 'list', 'octo/demo', '--json'],
      ['hook', 'test', 'octo/demo'],
      ['catch-up', 'octo/demo', '--json'],
      ['hook', 'remove', 'octo/demo', '--json'],
    ]) {
      await using command = new Program([...argv, '--verbose'], env)
      said.push(argvOf(command.pid))
      const { out, err } = await command.ended
      said.push(out, err)
    }
    said.push(JSON.stringify(await host.hooks()))
    const { out, err } = await program.stop()
    said.push(out, err)
    for (const entry of await journalOf(host.home)) said.push(JSON.stringify(entry.headers), textOf(entry))
    const all = said.join('\n')
    expect(all).toContain('ping of octo/demo arrived')
    expect([SECRET, CLIENT.secret, token].filter((secret) => all.includes(secret))).toEqual([])
  })

  it('removes its hook at the end, and after a crash uses the same again', async () => {
    await using host = await startHost()
    const start = async () => {
      const program = host.serve('--hook', 'octo/demo')
      const ready = await program.object({ type: 'hook', state: 'ready' })
      return { program, id: ready['id'], created: ready['created'] }
    }
    const first = await start()
    await first.program.stop('SIGKILL')
    expect((await host.hooks()).map(({ id }) => id)).toEqual([first.id])
    const second = await start()
    expect([second.id, second.created]).toEqual([first.id, false])
    const ended = await second.program.stop('SIGTERM')
    expect(ended.code).toBe(0)
    expect(ended.err).toContain('hook of octo/demo removed')
    expect(await host.hooks()).toEqual([])
    expect((await host.relay('hook', 'list', '--json')).out).toBe('')
  })
})
