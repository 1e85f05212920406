import { describe, expect, it } from 'vitest'
import { GITEA, giteaDelivery, post } from '../helpers/delivery.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTunnel } from './rig.js'

const GITEA_JSON = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'

describe('a delivery through a tunnel', () => {
  it('is in the journal with the bytes that Gitea signed', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { provider: GITEA })
    await rig.status({ state: 'connected' })
    expect((await post(smee.channel, giteaDelivery({ body: GITEA_JSON }))).status).toBe(200)
    await rig.stored(1)
    const entry = rig.journal.read(1)
    expect(Buffer.from(entry?.body ?? '').toString()).toBe(GITEA_JSON)
    expect(entry?.restored?.how).toBe('indented-go')
    expect(await rig.status({ roundTrip: 'ok' })).toMatchObject({ state: 'connected', url: smee.channel })
    expect(rig.journal.count()).toBe(1)
  })
})
