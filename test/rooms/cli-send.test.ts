import { expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { type Item, openSending, readPlan, send } from '../../src/cli/send.js'
import { callInstance } from '../../src/cli/instance-client.js'
import { createInstanceRecord } from '../../src/instance/protocol.js'
import { emptyFolder } from '../kit/folder.js'
import { receiver } from '../kit/receiver.js'
import { testShell } from './cli-shell.js'

const recorded = { provider: 'github', event: 'push', deliveryId: 'id', headers: [], body: Buffer.from('{}') }
const there: Item = { name: '#1', load: async () => recorded }
/** Swept away since it was chosen. */
const gone: Item = { name: '#2', load: async () => undefined }

interface Options extends NonNullable<Parameters<typeof testShell>[0]> {
  readonly onReady?: () => void
}

async function sendAll(sending: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of sending);
}

/** Sends the items, and returns how that ended, how many were received, and the messages. */
async function sent(items: readonly Item[], { onReady, ...options }: Options = {}) {
  await using target = await receiver()
  const env = { RELAY_WEBHOOK_SECRET: 'secret', RELAY_HOME: emptyFolder() }
  const { shell, err } = testShell({ color: 'never', env, ...options })
  const flags = { expect: '2xx', to: target.url }
  const plan = readPlan(flags)
  await using sending = await openSending(shell, flags, plan)
  onReady?.()
  const ended = await sendAll(send(shell, plan, items, sending)).catch((error: unknown) => error)
  return { ended, received: target.received.length, err: err() }
}

it('leaves out what is gone from the journal when its turn comes', async () => {
  expect(await sent([gone, there, gone, there])).toEqual({ ended: undefined, received: 2, err: '2 sent\n' })
  const ended = expect.objectContaining({ kind: 'no_match' })
  expect(await sent([gone, gone])).toEqual({ ended, received: 0, err: '' })
})

it('sends nothing when it was interrupted while files were read', async () => {
  const stop = new AbortController()
  const interrupted = new RelayError('cancelled', 'Interrupted')
  let loaded = 0
  const item: Item = { name: 'a.json', load: () => (loaded++, there.load()) }
  // As a signal is heard: in the next turn of the event loop, and there was none while files were read.
  const onReady = () => void setImmediate(() => stop.abort(interrupted))
  const ran = await sent([item], { signal: stop.signal, onReady })
  expect({ ...ran, loaded }).toEqual({ ended: interrupted, received: 0, err: '', loaded: 0 })
})

it('counts on a terminal where the results go elsewhere, and leaves nothing there', async () => {
  let text = ''
  const stderr = { isTTY: true, columns: 80, write: (part: string | Uint8Array) => (text += String(part)) }
  const many = Array.from({ length: 60 }, () => there)
  expect(await sent(many, { stderr })).toMatchObject({ ended: undefined, received: 60 })
  expect(text).toContain('1/60')
  expect(text).toContain('60/60')
  expect(text.endsWith('\r\u001b[K60 sent\n')).toBe(true)
  text = ''
  await sent(many, { stderr, quiet: true })
  await sent(many.slice(0, 49), { stderr })
  expect(text).toBe('49 sent\n')
})

it('believes no answer that the running relay has not proved', async () => {
  await using relay = await receiver({ body: '<html>' })
  const { url } = relay
  const record = createInstanceRecord({ pid: 1, url, profile: 'default' })
  await expect(callInstance(record, 'routes', {})).rejects.toMatchObject({
    kind: 'unavailable',
    message: `${url} gave an answer that the instance has not proved`,
  })
})
