import { afterEach, expect, it, vi } from 'vitest'
import { createLiveOutput } from '../../../../src/cli/commands/serve/live-output.js'
import { createOutput } from '../../../../src/cli/output/output.js'
import { testContext } from '../../../helpers/context.js'
import { delivery } from '../../../journal/rig.js'

afterEach(() => void vi.useRealTimers())

it('prints the first of many duplicates with its delivery id, and counts the others', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { context, err } = testContext()
  const { signal } = new AbortController()
  const live = createLiveOutput(createOutput(context), { json: false, signal })
  const receipt = { n: 7, duplicate: true, targets: [] }
  for (const id of ['a', 'b', 'c']) live.onDelivery(delivery(id), receipt)
  vi.advanceTimersByTime(1000)
  const lines = err().trimEnd().split('\n')
  expect(lines.map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'time'))).toEqual([
    expect.stringMatching(/^time {2}#7 {2}.* {2}duplicate, delivery a$/),
    'time  a duplicate … and 2 more like it in the last second',
  ])
})
