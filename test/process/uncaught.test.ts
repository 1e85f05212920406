import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, SECRET } from '../kit/delivery.js'
import { type Running, start as startCommand } from '../kit/run.js'

const IMPORT = `--import=${path.resolve('test/kit/uncaught.mjs')}`
const SURVIVED = 'error: a connection failed and was closed: read ECONNRESET\n'

/** The built program with a listener for SIGUSR2; see uncaught.mjs. */
const start = (...argv: string[]): Running =>
  startCommand(argv, { built: true, env: { NODE_OPTIONS: IMPORT, RELAY_WEBHOOK_SECRET: SECRET } })

/** Each sends its next delivery once the last is answered, until nothing answers. */
const SENDERS = 8

async function send(url: string): Promise<void> {
  for (;;) {
    const answer = await post(`${url}/webhook`, githubDelivery()).catch(() => undefined)
    if (answer?.status !== 200) return
  }
}

describe.skipIf(process.platform === 'win32')('an uncaught exception', () => {
  it('of a connection does not end relay serve; a defect does, with a message and exit 1', async () => {
    await using program = start('serve', '--port', '0', '--json')
    const url = await program.url()
    program.kill('SIGUSR2')
    await program.says(SURVIVED)
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    program.kill('SIGUSR2')
    const { code, err } = await program.ended
    // The rest of what serve says once it listens may come before the error or after it.
    const said = err.split('\n').find((line) => line.startsWith('{"v":1')) ?? '{}'
    expect({ code, said: JSON.parse(said) as unknown }).toEqual({
      code: 1,
      said: {
        v: 1,
        type: 'error',
        code: 'internal',
        error: expect.stringMatching(
          /^relay stopped because of a defect: TypeError at .+uncaught\.mjs.+Acknowledged deliveries are in the journal: start relay again/,
        ),
      },
    })
    expect(err).not.toContain('a secret detail')
  })

  it.each([1, 2, 3, 4])(
    'that is a defect ends relay serve with exit 1 while it stores deliveries: %i',
    async () => {
      await using program = start('serve', '--port', '0', '--json')
      const url = await program.url()
      program.kill('SIGUSR2')
      await program.says(SURVIVED)
      const sending = Promise.all(Array.from({ length: SENDERS }, () => send(url)))
      await program.objects({ type: 'delivery' }, 2 * SENDERS)
      program.kill('SIGUSR2')
      const { code, signal } = await program.ended
      expect({ code, signal }).toEqual({ code: 1, signal: null })
      await sending
    },
  )

  it('of a connection ends a command that may wait for it', async () => {
    await using program = start('wait', 'push', '--timeout', '1m')
    await program.says('listens for uncaught exceptions')
    program.kill('SIGUSR2')
    const { code, err } = await program.ended
    expect({ code, err: err.split('\n').at(-2) }).toEqual({
      code: 1,
      err: expect.stringMatching(/^error: relay stopped because of a defect: Error at /),
    })
  })
})
