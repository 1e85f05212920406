import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CLIENT } from '../helpers/code-host.js'
import { HOOK_SECRET, type HookHost, startHookHost } from '../helpers/hook-host.js'
import { asked, NOW, SLOW } from '../helpers/interrupt.js'
import { Program, relay } from '../helpers/program.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { signIn } from '../helpers/sign-in.js'

/** The request has its effect, and no answer during the test. */
const NEVER_ANSWERED = { kind: 'late', ms: 60_000 } as const

describe('relay serve --hook', () => {
  it('does not disturb another relay with a hook on the same repository', async () => {
    await using host = await startHookHost()
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

  it('leaves no webhook for its user to make', async () => {
    const flags = ['--provider', 'github', '--provider-url', 'http://127.0.0.1:1', '--hook', 'octo/demo']
    await using program = new Program(['serve', '--port', '0', ...flags])
    await program.says('no hook of octo/demo yet: ')
    expect((await program.stop()).err).toContain(
      '/webhook\n               of the webhook that relay creates in octo/demo\n',
    )
  })

  it('says who is signed in, or how to sign in', async () => {
    await using host = await startHookHost()
    const ended = async (): Promise<string> => {
      await using program = host.start('serve', '--port', '0')
      await program.says('  targets')
      return (await program.stop()).err
    }
    const signedIn = await ended()
    expect(signedIn).toMatch(/^ {2}signed in {4}ada {2}relay whoami shows the account$/m)
    expect(signedIn).not.toContain('relay login')
    expect(await host.relay('revoke')).toMatchObject({ code: 0 })
    expect(await ended()).toMatch(/^ {2}sign in {6}relay login$/m)
  })

  it('shows no secret: not in a process list, a log, an address or the journal', async () => {
    await using host = await startHookHost()
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
    expect([HOOK_SECRET, CLIENT.secret, token].filter((secret) => all.includes(secret))).toEqual([])
  })
})

/** `relay serve --hook octo/demo` once it has the hook. */
async function serveHook(host: HookHost) {
  const program = host.serve('--hook', 'octo/demo')
  const ready = await program.object({ type: 'hook', state: 'ready' })
  return { program, id: ready['id'], created: ready['created'] }
}

describe('the hook of relay serve --hook, at the end', () => {
  const idsOf = async (host: HookHost) => (await host.hooks()).map(({ id }) => id)
  /** The hooks that `relay hook list` shows. */
  const listed = async (host: HookHost): Promise<unknown[]> => {
    const { out } = await host.relay('hook', 'list', '--json')
    return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).id]))
  }
  /** Starts again after the first start left its hook, which is used again and then removed. */
  const usesAgain = async (host: HookHost, id: unknown): Promise<void> => {
    expect([await idsOf(host), await listed(host)]).toEqual([[id], [id]])
    const again = await serveHook(host)
    await using program = again.program
    expect([again.id, again.created]).toEqual([id, false])
    expect((await program.stop('SIGTERM')).err).toContain('hook of octo/demo removed')
    expect([await idsOf(host), await listed(host)]).toEqual([[], []])
  }

  it.each(['SIGTERM', 'SIGINT'] as const)('is removed after %s', async (signal) => {
    await using host = await startHookHost()
    const { program, id } = await serveHook(host)
    await using _ = program
    expect([await idsOf(host), await listed(host)]).toEqual([[id], [id]])
    const { code, err } = await program.stop(signal)
    expect([code, err]).toEqual([0, expect.stringContaining('hook of octo/demo removed\n')])
    expect([await idsOf(host), await listed(host)]).toEqual([[], []])
  })

  it('is used again after SIGKILL', async () => {
    await using host = await startHookHost()
    const { program, id } = await serveHook(host)
    expect(await program.stop('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
    await usesAgain(host, id)
  })

  it.each([
    ['SIGKILL', 'before the code host made it', SLOW, 0],
    ['SIGKILL', 'after the code host made it', NEVER_ANSWERED, 1],
    ['SIGTERM', 'when the code host has made it and does not answer', NEVER_ANSWERED, 1],
  ] as const)('is used again after %s during its creation, %s', async (signal, _name, fault, made) => {
    await using host = await startHookHost()
    for (const each of [NOW, fault]) host.sandbox.faults.next('hook', each)
    await using program = host.serve('--hook', 'octo/demo')
    await asked(host.sandbox, /^POST .*\/hooks$/)
    const { err } = await program.stop(signal)
    const why = 'could not be removed: The code host did not answer within 5 s.'
    expect(err.includes(why)).toBe(signal === 'SIGTERM')
    expect([(await idsOf(host)).length, await listed(host)]).toEqual([made, [null]])
    const again = await serveHook(host)
    await using _again = again.program
    expect(again.created).toBe(made === 0)
    expect([await idsOf(host), await listed(host)]).toEqual([[again.id], [again.id]])
    await again.program.stop('SIGTERM')
    expect([await idsOf(host), await listed(host)]).toEqual([[], []])
  })

  it('is used again after a second Ctrl-C', async () => {
    await using host = await startHookHost()
    const { program, id } = await serveHook(host)
    await using _ = program
    host.sandbox.faults.always('hook', 'slow')
    program.child.kill('SIGINT')
    await program.says('Press Ctrl-C again to quit now')
    expect(await program.stop('SIGINT')).toMatchObject({ code: null, signal: 'SIGINT' })
    host.sandbox.faults.clear()
    await usesAgain(host, id)
  })

  it.each([
    ['fails', '502', 'The sandbox failed (502)'],
    ['cuts the connection', 'reset', 'The sandbox'],
    ['does not answer', 'slow', 'The code host did not answer within 5 s'],
  ] as const)('is named when the code host %s, and used again', async (_name, fault, why) => {
    await using host = await startHookHost()
    const { program, id } = await serveHook(host)
    await using _ = program
    host.sandbox.faults.always('hook', fault)
    const { code, err } = await program.stop('SIGINT')
    expect([code, err]).toEqual([
      0,
      expect.stringContaining(`the hook of octo/demo could not be removed: ${why}`),
    ])
    expect(err).toContain('The next serve --hook uses it again, and relay hook remove octo/demo removes it\n')
    host.sandbox.faults.clear()
    await usesAgain(host, id)
  })

  it('is removed by hand after the code host was away', async () => {
    await using host = await startHookHost()
    const { program } = await serveHook(host)
    host.sandbox.faults.always('hook', '502')
    await program.stop('SIGTERM')
    host.sandbox.faults.clear()
    expect(await host.relay('hook', 'remove', 'octo/demo')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^hook of octo\/demo removed: http:\S+\/webhook\n$/),
    })
    expect([await idsOf(host), await listed(host)]).toEqual([[], []])
  })
})
