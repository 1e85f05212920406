import { afterEach, expect, it, vi } from 'vitest'
import { createLiveOutput } from '../../../../src/old/commands/serve/live-output.js'
import { createOutput } from '../../../../src/old/output/output.js'
import { createRouting } from '../../../../src/dispatch/routes.js'
import { testContext } from '../../../helpers/context.js'
import { delivery } from '../../../journal/rig.js'
import { plain } from '../../rig.js'

afterEach(() => void vi.useRealTimers())

it('prints the first of many duplicates with its delivery id, and counts the others', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { context, err } = testContext()
  const lines: string[] = []
  const live = createLiveOutput(createOutput(context), {
    json: false,
    routes: createRouting({ forward: [], exec: [], ignore: [] }),
    feed: {
      add(draw) {
        lines.push(...draw(Infinity).map(plain))
        return { redraw: () => false }
      },
    },
  })
  const receipt = { n: 7, duplicate: true, targets: [] }
  for (const id of ['a', 'b', 'c']) live.onDelivery(delivery(id), receipt)
  vi.advanceTimersByTime(1000)
  expect(lines).toEqual([expect.stringMatching(/#7 .*duplicate, delivery a$/)])
  expect(err()).toMatch(/^[\d:]+ {2}a duplicate … and 2 more like it in the last second\n$/)
})
