import { describe, expect, it } from 'vitest'
import { NOW, repository } from '../kit/code-host.js'
import { commentsOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'

const BUILT = { built: true } as const

describe('SIGKILL of relay serve --hook --catch-up', () => {
  it('while it catches up: the next ones get the rest, each delivery once', async () => {
    await using here = await place({ signedIn: true })
    const demo = await repository(here.sandbox)
    const texts = ['one', 'two', 'three', 'four', 'five']
    const port = String(await closedPort())
    const flags = ['--port', port, '--hook', 'octo/demo']
    await here.run('hook', 'add', 'octo/demo', '--url', `http://127.0.0.1:${port}/webhook`)
    await demo.comment(...texts)
    for (const fault of [NOW, NOW, 'secondary-limit'] as const) here.sandbox.faults.next('redeliver', fault)
    const first = await here.serveWith(BUILT, ...flags, '--catch-up')
    await first.says('catching up with octo/demo continues in 60 s')
    await first.stop('SIGKILL')
    expect(await commentsOf(here)).toEqual(texts.slice(0, 2))
    const second = await here.serveWith(BUILT, ...flags)
    await second.object({ type: 'hook', state: 'ready' })
    // They wait 15 s for the one that is gone.
    const others = [
      ['catch-up', '--json'],
      ['catch-up', 'octo/demo'],
    ].map((argv) => here.start(...argv))
    await Promise.all(others.map((each) => each.says(`Process ${first.pid} is catching up`)))
    const ended = await Promise.all(others.map((each) => each.ended))
    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    await second.stop()
    expect(await commentsOf(here)).toEqual(texts)
    const [hook] = await demo.hooks()
    expect(await demo.redelivered(hook?.id ?? 0)).toBe(texts.length)
  })
})
