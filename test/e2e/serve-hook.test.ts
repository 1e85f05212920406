import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CLIENT } from '../helpers/code-host.js'
import { HOOK_SECRET, startHookHost } from '../helpers/hook-host.js'
import { Program, relay } from '../helpers/program.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { signIn } from '../helpers/sign-in.js'

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

  it('removes its hook at the end, and after a crash uses the same again', async () => {
    await using host = await startHookHost()
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
