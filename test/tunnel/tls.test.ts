import { expect, it } from 'vitest'
import { Agent } from 'undici'
import { selfSigned } from '../helpers/certificate.js'
import { describeWith } from '../kit/needs.js'
import { smee as startSmee } from '../kit/smee.js'
import { startTunnel, through } from './rig.js'

describeWith('openssl', 'a connection with TLS', () => {
  it('reports a certificate from an unknown authority', async () => {
    await using smee = await startSmee({ certificate: selfSigned('127.0.0.1') })
    await using rig = await startTunnel(smee.channel)
    expect(await rig.status({ state: 'waiting' })).toMatchObject({
      why: "its certificate is from an unknown authority: set NODE_EXTRA_CA_CERTS to a file with your company's certificate",
    })
  })

  it('reports a certificate for another host, also when creating a channel', async () => {
    const certificate = selfSigned('smee.example')
    const agent = new Agent({ connect: { ca: certificate.cert } })
    await using smee = await startSmee({ certificate })
    for (const [address, why] of [
      [smee.channel, 'its certificate is for another host'],
      [smee.url, `${smee.url} did not create a channel: its certificate is for another host`],
    ] as const) {
      await using rig = await startTunnel(address, { sendOnce: through(agent) })
      expect(await rig.status({ state: 'waiting' })).toMatchObject({ why })
    }
    await agent.destroy()
  })

  it('reports a server that does not speak TLS', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel.replace('http:', 'https:'))
    expect(await rig.status({ state: 'waiting' })).toMatchObject({
      why: 'no TLS connection: check that the address is https and the port right',
    })
  })

  it('accepts a certificate from a known authority', async () => {
    const certificate = selfSigned('127.0.0.1')
    const agent = new Agent({ connect: { ca: certificate.cert } })
    await using smee = await startSmee({ certificate })
    await using rig = await startTunnel(smee.url, { sendOnce: through(agent) })
    expect((await rig.status({ roundTrip: 'ok' })).url).toMatch(smee.url)
    await agent.destroy()
  })
})
