import { expect, it } from 'vitest'
import { aborted } from '../../src/base/abort.js'
import { silentLog } from '../../src/base/log.js'
import type { TargetStatus } from '../../src/dispatch/dispatcher.js'
import { parseForward } from '../../src/dispatch/route.js'
import { openJournal } from '../../src/journal/open.js'
import type { Duty } from '../../src/serve/duties.js'
import { createSharedDispatcher } from '../../src/serve/shared-forwarding.js'
import { open } from '../journal/rig.js'

it('does not report a target as its own whose queue was lost before it was read', async () => {
  await using database = await open('memory')
  const journal = openJournal(database.sql)
  const read = new AbortController()
  const duties: Duty[] = []
  const states: TargetStatus['state'][] = []
  await using dispatcher = createSharedDispatcher({
    journal: {
      ...journal,
      async *waiting(filter) {
        yield* journal.waiting(filter)
        await aborted(read.signal)
      },
    },
    routes: [parseForward('push=http://localhost:1')],
    membership: {
      duties: {
        async run(duty) {
          duties.push(duty)
          return { async [Symbol.asyncDispose]() {} }
        },
      },
      subscribe: () => ({ [Symbol.dispose]() {} }),
    },
    concurrency: 1,
    env: {},
    log: silentLog,
    onTarget: ({ state }) => void states.push(state),
  })
  await dispatcher.start()
  const lost = new AbortController()
  const starting = duties[0]?.start({
    lost: lost.signal,
    assert: () => Promise.resolve(),
    isCurrent: () => true,
  })
  lost.abort()
  read.abort()
  await (await starting)?.[Symbol.asyncDispose]()
  expect(states).toEqual([])
})
