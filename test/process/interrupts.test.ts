import { describe, expect, it } from 'vitest'
import { asked, NEVER_ANSWERED, NOW, repository, SLOW } from '../kit/code-host.js'
import { place, type Serving } from '../kit/place.js'
import { fresh } from '../outside/fixture.js'

const BUILT = { built: true } as const

const here = fresh(() => place({ signedIn: true }))
const demo = fresh(() => repository(here.sandbox))

/** The hooks that there are, and those that `relay hook list` shows. */
async function hooks(): Promise<[unknown[], unknown[]]> {
  const { out } = await here.run('hook', 'list', '--json')
  const listed = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).id]))
  return [(await demo.hooks()).map(({ id }) => id), listed]
}

describe('Ctrl-C', () => {
  it('again during the end of relay serve --hook quits at once, and the hook is used again', async () => {
    const { serving, id } = await serveHook()
    here.sandbox.faults.always('hook', 'slow')
    serving.kill('SIGINT')
    await serving.says('Press Ctrl-C again to quit now')
    expect(await serving.stop('SIGINT')).toMatchObject({ code: null, signal: 'SIGINT' })
    here.sandbox.faults.clear()
    await expectUsedAgain(id)
  })
})

describe('SIGKILL of relay serve --hook: the next one uses the hook again', () => {
  it('while it runs', async () => {
    const { serving, id } = await serveHook()
    expect(await serving.stop('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
    await expectUsedAgain(id)
  })

  it.each([
    ['before the code host made it', SLOW, 0],
    ['after the code host made it', NEVER_ANSWERED, 1],
  ] as const)('during its creation, %s', async (_name, fault, made) => {
    for (const each of [NOW, fault]) here.sandbox.faults.next('hook', each)
    const serving = await here.serveWith(BUILT, '--hook', 'octo/demo')
    await asked(here.sandbox, /^POST .*\/hooks$/)
    await serving.stop('SIGKILL')
    const [ids, listed] = await hooks()
    expect([ids.length, listed]).toEqual([made, [null]])
    const again = await serveHook()
    expect(again.created).toBe(made === 0)
    expect(await hooks()).toEqual([[again.id], [again.id]])
    await again.serving.stop()
    expect(await hooks()).toEqual([[], []])
  })
})

/** `relay serve --hook octo/demo` once it has the hook. */
async function serveHook() {
  const serving: Serving = await here.serveWith(BUILT, '--hook', 'octo/demo')
  const { id, created } = await serving.object({ type: 'hook', state: 'ready' })
  return { serving, id, created }
}

/** Starts again after the first start left its hook, which is used again and then removed. */
async function expectUsedAgain(id: unknown): Promise<void> {
  expect(await hooks()).toEqual([[id], [id]])
  const again = await serveHook()
  expect([again.id, again.created]).toEqual([id, false])
  expect((await again.serving.stop()).err).toContain('hook of octo/demo removed')
  expect(await hooks()).toEqual([[], []])
}
