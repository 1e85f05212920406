import { describe, expect, it } from 'vitest'
import { selfSigned } from '../helpers/certificate.js'
import { githubDelivery, giteaDelivery, post, SECRET } from '../helpers/delivery.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Program, relay } from '../helpers/program.js'
import { startProxy } from '../helpers/proxy.js'
import { serve } from '../helpers/serve.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTarget, valuesOf } from '../helpers/target.js'

const BODY = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'
const GITEA = ['--provider', 'gitea', '--provider-url', 'https://git.example.com']

describe('relay serve --tunnel', () => {
  it('forwards what comes through a channel, byte for byte', async () => {
    await using smee = await startSmee()
    await using target = await startTarget()
    const home = emptyFolder()
    await using program = serve(home, [], [...GITEA, '--tunnel', smee.channel, '--forward', target.url])
    expect(await program.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })).toMatchObject({
      v: 1,
      url: smee.channel,
      attempt: 0,
      retryAt: null,
    })
    const delivery = giteaDelivery({ body: BODY })
    await post(smee.channel, delivery)
    await target.has(1)
    const [handed] = target.received
    expect(handed?.body.toString()).toBe(BODY)
    expect(handed && valuesOf(handed, 'X-Hub-Signature-256')).toEqual(
      delivery.headers.filter(([name]) => name === 'X-Hub-Signature-256').map(([, value]) => value),
    )
    expect(await program.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'indented-go' })
    const shown = await relay(['show', 'last'], { RELAY_HOME: home })
    expect(shown.out).toContain('restored    indented-go, after a tunnel changed the body\n')
    const doctor = await relay(['doctor', '--json'], { RELAY_HOME: home })
    expect(JSON.parse(doctor.out)).toMatchObject({
      checks: expect.arrayContaining([expect.objectContaining({ check: 'tunnel', state: 'ok' })]),
    })
    const { code, err } = await program.stop()
    expect(code).toBe(0)
    expect(err).toContain(`payload URL  ${smee.channel}\n`)
    expect(err).toContain(`tunnel connected: payload URL ${smee.channel}\n`)
    expect(err).toContain('tunnel works')
  })

  it('forwards a large delivery, which the program reads in a thread', async () => {
    await using smee = await startSmee()
    await using target = await startTarget()
    await using program = serve(
      emptyFolder(),
      [],
      [...GITEA, '--tunnel', smee.channel, '--forward', target.url],
    )
    await program.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    const body = JSON.stringify({ text: 'x'.repeat(500_000), list: Array(10_000).fill('é') }, null, 2)
    await post(smee.channel, giteaDelivery({ body }))
    await target.has(1)
    expect(target.received[0]?.body.toString() === body).toBe(true)
    expect(await program.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'indented-go' })
    expect((await program.stop()).code).toBe(0)
  })

  it('makes a channel where only a server is named, and keeps to it', async () => {
    await using smee = await startSmee()
    const home = emptyFolder()
    const urls: unknown[] = []
    for (const _ of ['first', 'second']) {
      await using program = serve(home, [], ['--tunnel', smee.url])
      urls.push((await program.object({ type: 'tunnel', state: 'connected' }))['url'])
      await program.stop()
    }
    expect(urls[0]).toMatch(new RegExp(`^${smee.url}/[\\w-]{16}$`))
    expect(urls[1]).toBe(urls[0])
  })
})

describeWith('openssl', 'relay serve --tunnel in a company', () => {
  it('goes through its proxy, and knows its certificates', async () => {
    const certificate = selfSigned('smee.invalid')
    await using smee = await startSmee({ certificate })
    await using proxy = await startProxy(() => smee.url)
    const { port, pathname } = new URL(smee.channel)
    // A name that cannot be looked up: only the proxy can lead there.
    const channel = `https://smee.invalid:${port}${pathname}`
    const args = ['serve', '--port', '0', '--json', '--tunnel', channel]
    const env = { RELAY_WEBHOOK_SECRET: SECRET, HTTPS_PROXY: proxy.url }
    await using stranger = new Program(args, env)
    expect(await stranger.object({ type: 'tunnel', state: 'waiting' })).toMatchObject({
      why: expect.stringMatching(/^its certificate is from an unknown authority/),
    })
    await stranger.stop()
    await using program = new Program(args, { ...env, NODE_EXTRA_CA_CERTS: certificate.file })
    await program.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    smee.message({ ...messageOf(githubDelivery({ body: '{"zen":"x"}' })), body: { zen: 'x' } })
    await program.object({ type: 'delivery', n: 1 })
    expect(new Set(proxy.asked)).toEqual(new Set([`smee.invalid:${port}`]))
  })
})

function messageOf({ headers }: ReturnType<typeof githubDelivery>): Record<string, string> {
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
}
