import { afterEach, describe, expect, it, vi } from 'vitest'
import { createReceiver } from '../../src/tunnel/receive.js'
import { createRefusals } from '../../src/webhook/refusals.js'
import { GITHUB, SECRETS } from '../helpers/delivery.js'
import { recordingLog } from '../http/edge.js'

/** The last log line after a second in which the event happened `count` times. */
async function logAfter(
  count: number,
  make: (log: ReturnType<typeof recordingLog>['log']) => () => unknown,
): Promise<string | undefined> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { log, lines } = recordingLog()
  const trigger = make(log)
  for (let i = 0; i < count; i++) await trigger()
  vi.advanceTimersByTime(1000)
  return lines.at(-1)
}

describe('the log line for further messages in the same second', () => {
  afterEach(() => void vi.useRealTimers())

  it.each([
    [
      2,
      'warn a tunnel message was refused: no well-formed signature … and 1 more like it in the last second',
    ],
    [
      1001,
      'warn a tunnel message was refused: no well-formed signature … and 1,000 more like it in the last second',
    ],
  ])('counts refused messages: %i', async (count, line) => {
    const never = (): never => {
      throw new Error('unreachable')
    }
    const last = await logAfter(count, (log) => {
      const block = new Uint8Array(Buffer.from('data: {"x-github-event":"push","body":{}}\n\n'))
      const parts = { secrets: SECRETS, scheme: GITHUB.webhook, maxBody: 1000, log }
      const { refuseUnsigned } = createReceiver({
        intake: { receive: never },
        refusals: createRefusals(parts),
        ...parts,
        large: { read: never, [Symbol.asyncDispose]: never },
        isOwn: () => Promise.resolve(false),
      })
      return () => refuseUnsigned({ blocks: [block], length: block.length })
    })
    expect(last).toBe(line)
  })
})
