import { describe, expect, it } from 'vitest'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { Program } from '../helpers/program.js'
import { signIn } from '../helpers/sign-in.js'

const REPO = { owner: 'octo', repo: 'demo' }
const MISSED = 5

/** A relay that missed deliveries of its hook, at a code host that redelivers none until `unlimit`. */
async function startBehind() {
  const sandbox = await startSandbox({ client: CLIENT })
  const env = {
    RELAY_HOME: emptyFolder(),
    RELAY_USER: 'ada',
    RELAY_PORT: '0',
    ...codeHost(sandbox),
  }
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  await using program = new Program(['serve', '--json', '--hook', 'octo/demo', '--catch-up'], env)
  await signIn(await program.url(), 'ada')
  await program.object({ type: 'hook', state: 'caught up' })
  await program.stop('SIGKILL')
  for (let n = 0; n < MISSED; n++) await provider.comment(token, { ...REPO, issueNumber: 1, body: `${n}` })
  await sandbox.idle()
  const body = JSON.stringify({ message: 'You have exceeded a secondary rate limit.' })
  const headers = { 'Retry-After': '3' }
  sandbox.faults.always('redeliver', { kind: 'answer', status: 403, headers, body })
  return {
    env,
    unlimit: () => sandbox.faults.clear(),
    start: (...args: string[]) => new Program(args, env),
    /** How many times a delivery was sent again. */
    async redelivered(): Promise<number> {
      const [hook] = await provider.hooks.list(token, REPO)
      const page = await provider.hooks.log?.page(token, REPO, hook?.id ?? 0, undefined)
      return page?.deliveries.filter(({ redelivery }) => redelivery).length ?? 0
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}

const NOTHING = 'caught up with octo/demo: nothing was missing\n'

describe('two processes that catch up with one hook', () => {
  it('take turns: relay catch-up waits for relay serve, and finds nothing missing', async () => {
    await using host = await startBehind()
    await using serve = host.start('serve', '--json', '--hook', 'octo/demo', '--catch-up')
    await serve.object({ type: 'hook', state: 'missing' })
    await using second = host.start('catch-up', 'octo/demo')
    await second.says(`Process ${serve.pid} is catching up with octo/demo already.`)
    host.unlimit()
    expect(await serve.object({ type: 'hook', state: 'caught up' })).toMatchObject({ arrived: MISSED })
    expect(await second.ended).toMatchObject({ code: 0, out: NOTHING })
    expect(await host.redelivered()).toBe(MISSED)
  })

  it('take turns in two terminals, also when the first is killed', async () => {
    await using host = await startBehind()
    await using serve = host.start('serve', '--json', '--hook', 'octo/demo')
    await serve.object({ type: 'hook', state: 'ready' })
    await using first = host.start('catch-up')
    await first.says('Continues in 3 s')
    await using second = host.start('catch-up', '--json')
    await using third = host.start('catch-up', 'octo/demo')
    await Promise.all([second, third].map((each) => each.says(`Process ${first.pid} is catching up`)))
    await first.stop('SIGKILL')
    host.unlimit()
    const ended = [await second.ended, await third.ended]
    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    expect(await host.redelivered()).toBe(MISSED)
  })

  it('stop waiting at Ctrl-C', async () => {
    await using host = await startBehind()
    await using serve = host.start('serve', '--json', '--hook', 'octo/demo', '--catch-up')
    await serve.object({ type: 'hook', state: 'missing' })
    await using second = host.start('catch-up')
    await second.says('Waiting until it has finished')
    expect(await second.stop('SIGINT')).toMatchObject({ code: 130, out: '' })
  })
})
