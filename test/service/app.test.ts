import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import { contentsOf, emptyFolder, type Env } from '../kit/folder.js'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { setUpApp } from '../kit/pages.js'
import { type Place, place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { database } from '../kit/postgres.js'
import type { Running } from '../kit/run.js'
import { smee } from '../kit/smee.js'
import { sentSecrets, tapRequests } from '../kit/tap.js'

const NO_CLIENT: Env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
const BUILT = { built: true } as const

/** A place whose commands are processes. */
function asProcesses(here: Place) {
  const { sandbox } = here
  return { sandbox, start: (...argv: string[]): Running => here.startWith(BUILT, ...argv) }
}

describeWith('keyring', 'relay setup --store keychain', () => {
  it("keeps the client's secret and the App's key in the keychain alone, where serve finds them", async () => {
    // Other tests use the keyring too.
    const RELAY_PROFILE = `app-${randomBytes(4).toString('hex')}`
    const env = { ...NO_CLIENT, RELAY_PROFILE, RELAY_PORT: String(await closedPort()) }
    await using here = await place({ store: 'keychain', env })
    using tap = tapRequests(Number(new URL(here.sandbox.url).port))
    const { slug } = await setUpApp(asProcesses(here))
    // The profile remembers its store.
    const remembered = { ...BUILT, env: { RELAY_STORE: undefined } }
    const relay = await here.serveWith(remembered, '--catch-up')
    await relay.object({ type: 'hook', app: slug, state: 'caught up' })
    const { out } = await here.runWith(remembered, 'doctor', '--json')
    expect(JSON.parse(out).checks).toContainEqual({
      check: 'hook',
      state: 'ok',
      text: `the webhook of ${slug} fits, and its last delivery was answered`,
    })
    const reveal = async (name: string): Promise<string> =>
      (await here.runWith(remembered, 'config', '--reveal', name)).out.trim()
    const secret = await reveal('clientSecret')
    expect(secret).toMatch(/^[0-9a-f]{40}$/)
    const id = await reveal('clientId')
    expect((await relay.stop()).code).toBe(0)
    const secrets = sentSecrets(tap.requests)
    expect([secrets.get(secret), [...secrets.values()]]).toEqual([
      'client secret',
      expect.arrayContaining(['App key']),
    ])
    const files = contentsOf(here.home)
    const inFiles = [...secrets].filter(([value]) => files.includes(value)).map(([, kind]) => kind)
    expect([files.includes(id), inFiles]).toEqual([true, []])
  })
})

describeWith('postgres', "the App's webhook of two relays on one database", () => {
  it('is led to one of them, which alone catches up, and then to the other when that is killed', async () => {
    await using own = await database()
    await using tunnel = await smee()
    await using here = await place({ env: { ...NO_CLIENT, ...own.env } })
    const demo = await repository(here.sandbox)
    const flags = ['--tunnel', tunnel.channel, '--catch-up']
    const before = await here.serveWith(BUILT, ...flags)
    await before.object({ type: 'tunnel', state: 'connected' })
    await setUpApp(asProcesses(here))
    expect((await before.stop()).code).toBe(0)
    await demo.comment('one')
    const first = await here.serveWith(BUILT, ...flags)
    await first.object({ type: 'hook', state: 'caught up', arrived: 1 })
    const second = await here.serveWith({ ...BUILT, env: { RELAY_HOME: emptyFolder() } }, ...flags)
    await demo.comment('two')
    await first.objects({ type: 'delivery', event: 'issue_comment' }, 2)
    await first.stop('SIGKILL')
    await demo.comment('three')
    await second.object({ type: 'hook', state: 'leads here' })
    await second.object({ type: 'hook', state: 'caught up' })
    await expect
      .poll(async () => (await linesOf(here, '--event', 'issue_comment')).length, { timeout: 30_000 })
      .toBe(3)
    const { code, out } = await second.stop()
    expect(code).toBe(0)
    // While the first ran, it had no part in the webhook.
    const events = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    expect(events.find(({ type }) => type === 'hook')).toMatchObject({ state: 'leads here' })
    expect(events.filter(({ event }) => event === 'issue_comment')).toHaveLength(1)
  })
})
