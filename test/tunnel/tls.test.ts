import { expect, it } from 'vitest'
import { Agent } from 'undici'
import { selfSigned } from '../helpers/certificate.js'
import { describeWith } from '../helpers/needs.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTunnel, through } from './rig.js'

describeWith('openssl', 'a connection with TLS', () => {
  it('tells of a certificate that nobody signed', async () => {
    await using smee = await startSmee({ certificate: selfSigned('127.0.0.1') })
    await using rig = await startTunnel(smee.channel)
    expect(await rig.status({ state: 'waiting' })).toMatchObject({
      why: "its certificate is signed by one this machine does not know: NODE_EXTRA_CA_CERTS names a file with your company's",
    })
  })

  it('tells of a certificate for another host, and makes no channel there either', async () => {
    const certificate = selfSigned('smee.example')
    const agent = new Agent({ connect: { ca: certificate.cert } })
    await using smee = await startSmee({ certificate })
    for (const [address, why] of [
      [smee.channel, 'its certificate is for another host'],
      [smee.url, `${smee.url} makes no channel: its certificate is for another host`],
    ] as const) {
      await using rig = await startTunnel(address, { fetch: through(agent) })
      expect(await rig.status({ state: 'waiting' })).toMatchObject({ why })
    }
    await agent.destroy()
  })

  it('tells of a server that speaks none', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel.replace('http:', 'https:'))
    expect(await rig.status({ state: 'waiting' })).toMatchObject({
      why: 'it does not speak TLS as it should: is the address https, and the port right?',
    })
  })

  it('works with a certificate that this machine knows', async () => {
    const certificate = selfSigned('127.0.0.1')
    const agent = new Agent({ connect: { ca: certificate.cert } })
    await using smee = await startSmee({ certificate })
    await using rig = await startTunnel(smee.url, { fetch: through(agent) })
    expect((await rig.status({ roundTrip: 'ok' })).url).toMatch(smee.url)
    await agent.destroy()
  })
})
