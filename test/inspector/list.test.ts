import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRig, type Rig } from './rig.js'

describe('the list', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
    for (const id of ['a', 'b', 'c']) await rig.deliver({ id, body: '{"ref":"refs/heads/main"}' })
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  const line = (n: number) => ({
    n,
    receivedAt: expect.any(Number),
    event: 'push',
    action: null,
    repo: null,
    subject: 'main',
    size: 25,
    duplicates: 0,
    targets: [],
  })

  it('has the newest first, in pages', async () => {
    expect(await rig.json('deliveries?limit=2')).toEqual({ deliveries: [line(3), line(2)], next: 2 })
    expect(await rig.json('deliveries?limit=2&before=2')).toEqual({ deliveries: [line(1)], next: null })
  })
})

describe('the stream of changes', () => {
  it('begins with the state, then has new deliveries, and ends when relay stops', async () => {
    const rig = await openRig()
    const stream = await rig.get('live')
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    if (!reader) throw new Error('there is no stream')
    const first = await reader.read()
    expect(first.value).toMatch(/^event: state\ndata: \{"type":"state",/)
    await rig.deliver({ id: 'new' })
    const next = await reader.read()
    expect(next.value).toMatch(
      /^id: [\w-]+\.1\nevent: deliveries\ndata: \{"type":"deliveries","deliveries":\[\{"n":1,/,
    )
    const began = performance.now()
    await rig[Symbol.asyncDispose]()
    expect(await reader.read()).toEqual({ done: true, value: undefined })
    expect(performance.now() - began).toBeLessThan(2000)
  })
})
