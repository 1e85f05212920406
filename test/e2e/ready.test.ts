import { it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { KEY, PASSWORD, startPostgres } from '../helpers/postgres.js'
import { Program } from '../helpers/program.js'
import { serve } from '../helpers/serve.js'
import { illDisk } from '../store/ills/ill-disk.js'

/** Milliseconds in which it must notice that its disk is ill, or well again. */
const RECOVERY = 15_000

async function ready(url: string): Promise<unknown> {
  const response = await fetch(`${url}/ready`)
  return { status: response.status, body: await response.json() }
}

const READY = { status: 200, body: { status: 'ready' } }
const AWAY = { status: 503, body: { error: 'Deliveries cannot be stored' } }

describeWith(['Linux', 'gcc'], 'GET /ready of a running relay', () => {
  it.concurrent.for(['error relay.db-wal', 'slow 60000'] as const)(
    'is 503 while its disk is ill (%s), without a delivery that fails first, and 200 again afterwards',
    async (illness, { expect }) => {
      const disk = illDisk()
      await using program = serve(emptyFolder(), disk.wrapper)
      const url = await program.url()
      expect(await ready(url)).toEqual(READY)
      disk.set(illness)
      await expect.poll(() => ready(url), { timeout: RECOVERY }).toEqual(AWAY)
      expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(503)
      disk.set('none')
      await expect.poll(() => ready(url), { timeout: RECOVERY }).toEqual(READY)
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
      const { err } = await program.stop('SIGKILL')
      expect(err.match(/\/ready answers .*/g)).toEqual([
        expect.stringMatching(/^\/ready answers 503: ./),
        '/ready answers 200 again',
      ])
    },
  )

  it.concurrent('turns 503 before relay stops taking deliveries, where a load balancer asks', async ({
    expect,
  }) => {
    await using program = serve(emptyFolder())
    const url = await program.url()
    expect(await ready(url)).toEqual(READY)
    program.child.kill('SIGTERM')
    await program.says('/ready answers 503 for 5 s')
    expect(await ready(url)).toEqual({ status: 503, body: { error: 'relay is stopping' } })
    expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
    expect((await program.ended).code).toBe(0)
  })
})

describeWith('postgres', 'GET /ready of a relay on PostgreSQL', () => {
  it('is 503 while the server is away, and 200 again by itself', async ({ expect }) => {
    await using server = await startPostgres()
    await using program = new Program(['serve', '--port', '0', '--json'], {
      RELAY_STORE: String(server.store),
      RELAY_TOKEN_KEY: KEY.reveal(),
      RELAY_WEBHOOK_SECRET: SECRET,
      PGPASSWORD: PASSWORD,
    })
    const url = await program.url()
    expect(await ready(url)).toEqual(READY)
    await server.stop()
    await expect.poll(() => ready(url), { timeout: RECOVERY }).toEqual(AWAY)
    await server.start()
    await expect.poll(() => ready(url), { timeout: RECOVERY }).toEqual(READY)
    expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
  })
})
