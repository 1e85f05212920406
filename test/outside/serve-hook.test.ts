import { beforeEach, afterEach, describe, expect, it } from 'vitest'
import { asked, NEVER_ANSWERED, NOW, repository, type Repository } from '../kit/code-host.js'
import { CLIENT, hostVariables, type Place, place } from '../kit/place.js'
import { run, start } from '../kit/run.js'

describe('relay serve --hook', () => {
  it.each(['--hook=octo/demo', '--catch-up'])('is refused with --sandbox: %s', async (flag) => {
    expect(await run(['serve', '--sandbox', flag])).toMatchObject({
      code: 2,
      err: expect.stringContaining("the sandbox's own webhook sends every delivery already"),
    })
  })

  it('leaves no webhook for its user to make', async () => {
    const env = hostVariables('github', 'http://127.0.0.1:1', CLIENT)
    await using serving = start(['serve', '--port', '0', '--hook', 'octo/demo'], { env })
    await serving.says('no hook of octo/demo yet: ')
    expect((await serving.stop()).err).toContain(
      '/webhook\n               of the webhook that relay creates in octo/demo\n',
    )
  })

  it('says who is signed in, or how to sign in', async () => {
    await using here = await place({ signedIn: true })
    const ended = async (): Promise<string> => {
      await using serving = here.start('serve', '--port', '0')
      await serving.says('  targets')
      return (await serving.stop()).err
    }
    const signedIn = await ended()
    expect(signedIn).toMatch(/^ {2}signed in {4}ada {2}relay whoami shows the account$/m)
    expect(signedIn).not.toContain('relay login')
    expect(await here.run('revoke')).toMatchObject({ code: 0 })
    expect(await ended()).toMatch(/^ {2}sign in {6}relay login$/m)
  })
})

describe('the hook of relay serve --hook', () => {
  let here: Place
  let demo: Repository
  beforeEach(async () => {
    here = await place({ signedIn: true })
    demo = await repository(here.sandbox)
  })
  afterEach(() => here[Symbol.asyncDispose]())

  /** `relay serve --hook octo/demo` once it has the hook. */
  const serveHook = async (removal?: number) => {
    const seams = removal === undefined ? {} : { seams: { limits: { removal } } }
    const serving = await here.serveWith(seams, '--hook', 'octo/demo')
    const { id, created } = await serving.object({ type: 'hook', state: 'ready' })
    return { serving, id, created }
  }
  /** The hooks that there are, and those that `relay hook list` shows. */
  const hooks = async (): Promise<[unknown[], unknown[]]> => {
    const { out } = await here.run('hook', 'list', '--json')
    const listed = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).id]))
    return [(await demo.hooks()).map(({ id }) => id), listed]
  }
  /** Starts again after the first start left its hook, which is used again and then removed. */
  const expectUsedAgain = async (id: unknown): Promise<void> => {
    expect(await hooks()).toEqual([[id], [id]])
    const again = await serveHook()
    expect([again.id, again.created]).toEqual([id, false])
    expect((await again.serving.stop()).err).toContain('hook of octo/demo removed')
    expect(await hooks()).toEqual([[], []])
  }

  it('is made once the user has signed in, as soon as relay sees it', async () => {
    expect(await here.run('revoke')).toMatchObject({ code: 0 })
    const seams = { limits: { signInLook: 50 } }
    const serving = await here.serveWith({ seams }, '--hook', 'octo/demo')
    expect(await serving.object({ type: 'hook', state: 'failed' })).toMatchObject({
      error: expect.stringContaining('relay login'),
      retries: true,
    })
    await here.useToken()
    const { url } = await serving.object({ type: 'hook', state: 'ready' })
    expect((await demo.hooks()).map((hook) => hook.url)).toEqual([url])
  })

  it('is made after a failure of the code host, and given up where a person has to act', async () => {
    here.sandbox.faults.next('hook', '502')
    const serving = await here.serve('--hook', 'octo/demo', '--hook', 'octo/nowhere')
    const failures = await serving.objects({ type: 'hook', state: 'failed' }, 2)
    const said = failures.map(({ error, retries }) => `${String(retries)}: ${String(error).slice(0, 20)}`)
    expect(new Set(said)).toEqual(new Set(['true: The sandbox failed (', 'false: The sandbox refused:']))
    await serving.object({ type: 'hook', state: 'ready' })
  })

  it('keeps the address and events that relay hook add gave it, and stays', async () => {
    const chosen = 'http://127.0.0.1:9/chosen'
    await here.run('hook', 'add', 'octo/demo', '--url', chosen, '--events', 'push')
    const serving = await here.serve('--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    await serving.stop()
    expect((await demo.hooks()).map(({ url, events }) => [url, events])).toEqual([[chosen, ['push']]])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('is removed after %s', async (signal) => {
    const { serving, id } = await serveHook()
    expect(await hooks()).toEqual([[id], [id]])
    const { code, err } = await serving.stop(signal)
    expect([code, err]).toEqual([0, expect.stringContaining('hook of octo/demo removed\n')])
    expect(await hooks()).toEqual([[], []])
  })

  it('is used again after an end during its creation, when the code host has made it and does not answer', async () => {
    for (const each of [NOW, NEVER_ANSWERED]) here.sandbox.faults.next('hook', each)
    const seams = { limits: { removal: 300 } }
    const serving = await here.serveWith({ seams }, '--hook', 'octo/demo')
    await asked(here.sandbox, /^POST .*\/hooks$/)
    const { err } = await serving.stop()
    expect(err).toContain('could not be removed: The code host did not answer within 0.3 s.')
    const [ids, listed] = await hooks()
    expect([ids.length, listed]).toEqual([1, [null]])
    const again = await serveHook()
    expect([again.id, again.created]).toEqual([ids[0], false])
    expect(await hooks()).toEqual([[again.id], [again.id]])
    await again.serving.stop()
    expect(await hooks()).toEqual([[], []])
  })

  it.each([
    ['fails', '502', 'The sandbox failed (502)', undefined],
    ['cuts the connection', 'reset', 'The sandbox', undefined],
    ['does not answer', 'slow', 'The code host did not answer within 0.3 s', 300],
  ] as const)('is named when the code host %s, and used again', async (_name, fault, why, removal) => {
    const { serving, id } = await serveHook(removal)
    here.sandbox.faults.always('hook', fault)
    const { code, err } = await serving.stop('SIGINT')
    expect([code, err]).toEqual([
      0,
      expect.stringContaining(`the hook of octo/demo could not be removed: ${why}`),
    ])
    expect(err).toContain('The next serve --hook uses it again, and relay hook remove octo/demo removes it\n')
    here.sandbox.faults.clear()
    await expectUsedAgain(id)
  })

  it('is removed by hand after the code host was away', async () => {
    const { serving } = await serveHook()
    here.sandbox.faults.always('hook', '502')
    await serving.stop()
    here.sandbox.faults.clear()
    expect(await here.run('hook', 'remove', 'octo/demo')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^hook of octo\/demo removed: http:\S+\/webhook\n$/),
    })
    expect(await hooks()).toEqual([[], []])
  })
})
