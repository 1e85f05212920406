import { expect, it, vi } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { completeSettings } from '../../../src/cli/settings.js'
import { readOptions } from '../../../src/cli/settings/read.js'
import { serve } from '../../../src/serve/serve.js'
import type { TunnelStatus } from '../../../src/tunnel/state.js'
import { startSmee } from '../../helpers/smee-server.js'
import { closeAfter, findings, profile } from './rig.js'

/** What is told is written a moment later. */
const LIMIT = 10_000

/** A profile that is served with a tunnel; `until` it is told a status with these fields. */
async function served(address: string) {
  const { context } = await profile({ RELAY_TUNNEL: address })
  const waiting: (() => void)[] = []
  const statuses: TunnelStatus[] = []
  const onTunnel = (status: TunnelStatus): void => {
    statuses.push(status)
    for (const look of waiting.splice(0)) look()
  }
  const { options } = readOptions(context, {}, silentLog)
  closeAfter(await serve(completeSettings(options), { onTunnel }))
  const until = async (fields: Partial<TunnelStatus>): Promise<TunnelStatus> => {
    for (;;) {
      const last = statuses.at(-1)
      if (last && Object.entries(fields).every(([name, value]) => Reflect.get(last, name) === value))
        return last
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }
  const tunnel = async () => (await findings(context)).find(({ check }) => check === 'tunnel')
  return { until, tunnel }
}

it('tells how it stands with the tunnel, and that it is down', async () => {
  const smee = await startSmee()
  const { until, tunnel } = await served(smee.channel)
  const { since } = await until({ roundTrip: 'ok' })
  const text = `${smee.channel} is connected since ${new Date(since).toISOString()}, and works`
  await vi.waitFor(async () => expect(await tunnel()).toEqual({ check: 'tunnel', state: 'ok', text }), LIMIT)
  await smee[Symbol.asyncDispose]()
  await until({ state: 'waiting' })
  const down = {
    state: 'wrong',
    text: expect.stringMatching(/^down since \S+Z: [a-z ]+; attempt \d+ is next$/),
    mend: expect.stringContaining('HTTPS_PROXY'),
  }
  await vi.waitFor(async () => expect(await tunnel()).toMatchObject(down), LIMIT)
})

it('tells that messages get lost', async () => {
  await using smee = await startSmee()
  smee.refusePosts(413)
  const { until, tunnel } = await served(smee.channel)
  await until({ roundTrip: 'the server answers 413 to a delivery' })
  const text = `${smee.channel} is connected, but a message to itself was lost: the server answers 413 to a delivery`
  const found = { check: 'tunnel', state: 'wrong', text, mend: 'relay serve --tunnel' }
  await vi.waitFor(async () => expect(await tunnel()).toEqual(found), LIMIT)
})
