import { expect, it, vi } from 'vitest'
import type { TunnelStatus } from '../../../../src/tunnel/tunnel.js'
import { smee as startSmee } from '../../../kit/smee.js'
import { closeAfter, findings, profile } from './rig.js'
import { serveFor } from '../../rig.js'
import { localTime } from '../../../../src/old/output/time.js'

/** A status is stored a moment after it is reported. */
const LIMIT = 10_000

/** A profile that is served with a tunnel; `until` it reports a status with these fields. */
async function served(address: string) {
  const { context } = await profile({ RELAY_TUNNEL: address })
  const waiting: (() => void)[] = []
  const statuses: TunnelStatus[] = []
  const onTunnel = (status: TunnelStatus): void => {
    statuses.push(status)
    for (const look of waiting.splice(0)) look()
  }
  closeAfter(await serveFor(context, { onTunnel }))
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

it('reports the status of the tunnel, and that it is down', async () => {
  const smee = await startSmee()
  const { until, tunnel } = await served(smee.channel)
  const { since } = await until({ roundTrip: 'ok' })
  const text = `connected to ${smee.channel} since ${localTime(since)}, and works`
  await vi.waitFor(async () => expect(await tunnel()).toEqual({ check: 'tunnel', state: 'ok', text }), LIMIT)
  await smee[Symbol.asyncDispose]()
  await until({ state: 'waiting' })
  const down = {
    state: 'fail',
    text: expect.stringMatching(/^down since \S+ \S+: [a-z ]+; next is attempt \d+; payload URL http:\S+$/),
    fix: expect.stringContaining('HTTPS_PROXY'),
  }
  await vi.waitFor(async () => expect(await tunnel()).toMatchObject(down), LIMIT)
})

it('reports that messages are lost', async () => {
  await using smee = await startSmee()
  smee.refusePosts(413)
  const { until, tunnel } = await served(smee.channel)
  await until({ roundTrip: 'the server answers 413 to a delivery' })
  const text = `connected to ${smee.channel}, but a test message was lost: the server answers 413 to a delivery`
  const found = { check: 'tunnel', state: 'fail', text, fix: 'relay serve --tunnel' }
  await vi.waitFor(async () => expect(await tunnel()).toEqual(found), LIMIT)
})
