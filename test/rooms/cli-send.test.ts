import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { createCheckAhead } from '../../src/cli/commands/replay.js'
import { type Item, openDestination, readPlan, send } from '../../src/cli/commands/send.js'
import { emptyFolder } from '../kit/folder.js'
import { receiver } from '../kit/receiver.js'
import { testShell } from './cli-shell.js'

const there: Item = {
  name: '#1',
  load: async () => ({
    provider: 'github',
    event: 'push',
    deliveryId: 'id',
    headers: [],
    body: Buffer.from('{}'),
  }),
}
/** Swept away since it was chosen. */
const gone: Item = { name: '#2', load: async () => undefined }

interface Options extends NonNullable<Parameters<typeof testShell>[0]> {
  readonly onReady?: () => void
}

/** Sends the items, and returns how that ended, how many were received, and the messages. */
async function sending(items: readonly Item[], { onReady, ...options }: Options = {}) {
  await using target = await receiver()
  const env = { RELAY_WEBHOOK_SECRET: 'secret', RELAY_HOME: emptyFolder() }
  const { shell, err } = testShell({ color: 'never', env, ...options })
  const flags = { expect: '2xx', to: target.url }
  const plan = readPlan(flags)
  await using destination = await openDestination(shell, flags, plan)
  onReady?.()
  const ended = await send(shell, plan, items, destination).catch((error: unknown) => error)
  return { ended, received: target.received.length, err: err() }
}

const interrupted = new RelayError('cancelled', 'Interrupted')

describe('send', () => {
  it('leaves out what is gone from the journal when its turn comes', async () => {
    expect(await sending([gone, there, gone, there])).toEqual({
      ended: undefined,
      received: 2,
      err: '2 sent\n',
    })
    expect(await sending([gone, gone])).toEqual({
      ended: expect.objectContaining({ kind: 'no_match' }),
      received: 0,
      err: '',
    })
  })

  it('sends nothing when it was interrupted while files were read', async () => {
    const stop = new AbortController()
    let loaded = 0
    const item: Item = { name: 'a.json', load: () => (loaded++, there.load()) }
    // As a signal is heard: in the next turn of the event loop, and there was none while files were read.
    const onReady = () => void setImmediate(() => stop.abort(interrupted))
    const ran = await sending([item], { signal: stop.signal, onReady })
    expect({ ...ran, loaded }).toEqual({ ended: interrupted, received: 0, err: '', loaded: 0 })
  })

  it('says how many were sent when it is interrupted after that', async () => {
    const stop = new AbortController()
    const last: Item = { name: 'last', load: () => (stop.abort(interrupted), there.load()) }
    expect(await sending([there, last], { signal: stop.signal })).toEqual({
      ended: interrupted,
      received: 1,
      err: '1 sent\n',
    })
  })

  it('counts on a terminal where the results go elsewhere, and leaves nothing there', async () => {
    let text = ''
    const stderr = { isTTY: true, columns: 80, write: (part: string | Uint8Array) => (text += String(part)) }
    const many = Array.from({ length: 60 }, () => there)
    expect(await sending(many, { stderr })).toMatchObject({ ended: undefined, received: 60 })
    expect(text).toContain('1/60')
    expect(text).toContain('60/60')
    expect(text.endsWith('\r\u001b[K60 sent\n')).toBe(true)
    text = ''
    await sending(many, { stderr, quiet: true })
    await sending(many.slice(0, 49), { stderr })
    expect(text).toBe('49 sent\n')
  })
})

/** An item of so many bytes, and how often it was loaded. */
function counted(size: number): { item: Item; loaded: () => number } {
  let loaded = 0
  const load = async () => {
    loaded++
    return { provider: 'github', event: 'push', deliveryId: 'id', headers: [], body: new Uint8Array(size) }
  }
  return { item: { name: 'a', load }, loaded: () => loaded }
}

describe('what is checked ahead', () => {
  it('is loaded until it fills the limit, once', async () => {
    const limit = 100_000
    const checkAhead = createCheckAhead(limit)
    const all = [0, 1, 2, 3].map(() => counted(limit / 2))
    const items: Item[] = []
    for (const { item } of all) items.push(await checkAhead(item))
    expect(all.map(({ loaded }) => loaded())).toEqual([1, 1, 0, 0])
    expect(await items[0]?.load()).toBe(await items[0]?.load())
    const loadedItems = await Promise.all(items.map((item) => item.load()))
    expect(loadedItems.map((recorded) => recorded?.body.length)).toEqual(Array(4).fill(limit / 2))
    expect(all.map(({ loaded }) => loaded())).toEqual([1, 1, 1, 1])
  })

  it('counts more than bodies, so that no number of small ones is without end', async () => {
    const checkAhead = createCheckAhead()
    const all = Array.from({ length: 10_000 }, () => counted(1))
    for (const { item } of all) await checkAhead(item)
    expect(all.filter(({ loaded }) => loaded() > 0)).toHaveLength(2048)
  })
})
