import { expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { fails } from '../kit/run.js'

const NO_HOST = { host: 'none', env: { RELAY_PROVIDER: 'github' } } as const

it('relay log --follow goes on while relays end and start, and loses and repeats no entry', async () => {
  await using here = await place(NO_HOST)
  const ids: string[] = []
  let relay = await here.serve()
  await using log = here.start('log', '--follow', '--json')
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < 5; i += 1) {
      const id = `${round}-${i}`
      ids.push(id)
      expect((await relay.deliver({ id })).status).toBe(200)
      // Also what came while no relay ran for the command yet.
      if (i % 2 === 0) await log.object({ type: 'delivery', n: ids.length })
    }
    // A command that follows does not hold up the end.
    const began = performance.now()
    expect((await relay.stop()).code).toBe(0)
    expect(performance.now() - began).toBeLessThan(8000)
    relay = await here.serve()
  }
  await log.object({ n: ids.length })
  const { out } = await log.stop('SIGINT')
  const seen: unknown[] = out
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
  expect(seen).toMatchObject(ids.map((_, i) => ({ n: i + 1 })))
})

it('relay wait sees what comes after its relay has ended and another has started', async () => {
  await using here = await place(NO_HOST)
  const first = await here.serve()
  await using waiting = here.start('wait', 'fork', '--timeout', '60s', '--json')
  await first.stop()
  const second = await here.serve()
  await second.deliver({ event: 'push' })
  await second.deliver({ event: 'fork' })
  expect(await waiting.ended).toMatchObject({ code: 0, out: expect.stringContaining('"n":2,') })
})

it('a failure of the instance has the exit code of its kind', async () => {
  await using here = await place(NO_HOST)
  await here.serve('--no-inspect')
  const off = 'The inspector is off: relay runs with --no-inspect'
  expect(await here.run('inspect')).toEqual(fails(2, off))
})
