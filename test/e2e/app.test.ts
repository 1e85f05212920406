import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox } from '../../src/testing/index.js'
import { emptyFolder } from '../helpers/context.js'
import { startKeyring } from '../helpers/keyring.js'
import { describeWith } from '../helpers/needs.js'
import { startPostgres } from '../helpers/postgres.js'
import { Program, relay } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { serviceEnvironment } from '../helpers/service.js'
import { setUpApp } from '../helpers/setup.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTarget } from '../helpers/target.js'

/** A code host, and a data folder without a client. */
async function newcomer(over: Readonly<Record<string, string>> = {}) {
  const sandbox = await startSandbox()
  const home = emptyFolder()
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  const env = { RELAY_HOME: home, RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url, ...over }
  return {
    sandbox,
    home,
    env,
    provider,
    token,
    serve: (...flags: string[]) => new Program(['serve', '--port', '0', '--json', ...flags], env),
    /** Makes the App send one delivery for each text, in order. */
    async comment(...texts: string[]): Promise<void> {
      for (const body of texts) {
        await provider.comment(token, { owner: 'octo', repo: 'demo', issueNumber: 1, body })
        await sandbox.idle()
      }
    },
    async texts(): Promise<unknown[]> {
      const entries = (await journalOf(home)).filter(({ event }) => event === 'issue_comment')
      return entries.map((entry) => JSON.parse(textOf(entry)).comment.body)
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}

describe('relay setup --app-hook', () => {
  it('has the App send through the tunnel that runs, and what it sent meanwhile is caught up with through another', async () => {
    await using place = await newcomer()
    await using smee = await startSmee()
    await using elsewhere = await startSmee()
    await using target = await startTarget()
    const flags = (channel: string) => ['--tunnel', channel, '--catch-up', '--forward', target.url]
    let slug = ''
    {
      await using program = place.serve(...flags(smee.channel))
      await program.object({ type: 'tunnel', state: 'connected' })
      ;({ slug } = await setUpApp(place.sandbox, place.env))
      // The secret is that of the running relay, so it needs no restart for this.
      await place.comment('one')
      await program.object({ type: 'delivery', event: 'issue_comment' })
      await program.stop('SIGKILL')
    }
    await place.comment('two', 'three')
    await using program = place.serve(...flags(elsewhere.channel))
    expect(await program.object({ type: 'hook', app: slug, state: 'leads here' })).toMatchObject({
      url: elsewhere.channel,
      repaired: [`it led to ${smee.channel}`],
    })
    expect(await program.object({ type: 'hook', app: slug, state: 'caught up' })).toMatchObject({
      missing: 2,
      arrived: 2,
      failed: [],
    })
    await program.says(
      `webhook of the App ${slug} repaired (it led to ${smee.channel}): ${elsewhere.channel}`,
    )
    await place.comment('four')
    // Not only attempts: among them can be that of the first, which the kill interrupted.
    await program.objects({ type: 'delivery', event: 'issue_comment' }, 3)
    await program.objects({ type: 'attempt', outcome: 'succeeded' }, 3)
    expect((await program.stop()).code).toBe(0)
    expect(await place.texts()).toEqual(['one', 'two', 'three', 'four'])
  })

  it('and a hook on one repository never have an event forwarded twice', async () => {
    await using place = await newcomer()
    await using target = await startTarget()
    await using program = place.serve('--forward', `issue_comment=${target.url}`)
    const url = `${await program.url()}/webhook`
    await setUpApp(place.sandbox, place.env)
    const revealed = await relay(['config', '--reveal', 'webhookSecret'], place.env)
    // As a person makes it, which relay cannot refuse.
    const settings = { url, secret: new Secret(revealed.out.trim()), events: undefined }
    await place.provider.hooks.create(place.token, { owner: 'octo', repo: 'demo' }, settings)
    await place.comment('one', 'two', 'three')
    await program.objects({ type: 'delivery', event: 'issue_comment' }, 6)
    await target.has(3)
    expect((await program.stop()).code).toBe(0)
    expect(target.received.map(({ body }) => JSON.parse(body.toString()).comment.body)).toEqual([
      'one',
      'two',
      'three',
    ])
    // Once through the App, once through the hook.
    const entries = (await journalOf(place.home)).filter(({ event }) => event === 'issue_comment')
    const firsts = entries.filter(({ ignoredBy }) => ignoredBy === undefined)
    const numbers = new Map(firsts.map(({ deliveryId, n }) => [deliveryId, n]))
    expect([firsts.length, entries.length]).toEqual([3, 6])
    for (const { deliveryId, ignoredBy } of entries.filter((entry) => !firsts.includes(entry)))
      expect(ignoredBy).toBe(`#${numbers.get(deliveryId)}`)
    const log = await relay(['log', '--event', 'issue_comment'], place.env)
    expect(log.out).toContain('also came as #')
  })

  it('gets 150 deliveries that the App sent while relay was away, with limits in the way', async () => {
    await using place = await newcomer()
    const texts = Array.from({ length: 150 }, (_, n) => `comment ${n}`)
    {
      await using program = place.serve()
      await program.url()
      await setUpApp(place.sandbox, place.env)
      await program.stop('SIGKILL')
    }
    await place.comment(...texts)
    const body = JSON.stringify({ message: 'You have exceeded a secondary rate limit.' })
    const limit = { kind: 'answer', status: 403, headers: { 'Retry-After': '1' }, body } as const
    for (const operation of ['deliveries', 'redeliver'] as const) place.sandbox.faults.next(operation, limit)
    place.sandbox.faults.next('redeliver', '502')
    await using program = place.serve('--catch-up')
    expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({ failed: [] })
    await program.stop()
    expect(await place.texts()).toEqual(texts)
  }, 120_000)
})

describeWith('keyring', 'relay setup --store keychain', () => {
  /** All that lies below a folder, as one text. */
  function everything(folder: string): string {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return files.map((file) => readFileSync(path.join(file.parentPath, file.name), 'latin1')).join('\n')
  }

  it("keeps the client's secret and the App's key in the keychain alone, where serve finds them", async () => {
    await using keyring = await startKeyring()
    await using place = await newcomer(keyring.env)
    const env = { ...place.env, RELAY_STORE: 'keychain', RELAY_PORT: String(await closedPort()) }
    const { slug } = await setUpApp(place.sandbox, env)
    // The profile remembers its store.
    await using program = place.serve('--catch-up')
    await program.object({ type: 'hook', app: slug, state: 'caught up' })
    const { out } = await relay(['doctor', '--json'], place.env)
    expect(JSON.parse(out).checks).toContainEqual({
      check: 'App',
      state: 'ok',
      text: `the webhook of ${slug} fits, and its last delivery was answered`,
    })
    const secret = (await relay(['config', '--reveal', 'clientSecret'], place.env)).out.trim()
    expect(secret).toMatch(/^[0-9a-f]{40}$/)
    expect((await program.stop()).code).toBe(0)
    const files = everything(place.home)
    expect(files).toContain('setup-client')
    expect(files).not.toContain(secret)
    expect(files).not.toContain('PRIVATE KEY')
  })
})

describeWith('postgres', "the App's webhook of two relays on one database", () => {
  it('is led to one of them, which alone catches up, and then to the other when that is killed', async () => {
    await using server = await startPostgres()
    await using smee = await startSmee()
    await using place = await newcomer(serviceEnvironment(server))
    const flags = ['--tunnel', smee.channel, '--catch-up']
    {
      await using program = place.serve(...flags)
      await program.object({ type: 'tunnel', state: 'connected' })
      await setUpApp(place.sandbox, place.env)
      expect((await program.stop()).code).toBe(0)
    }
    await place.comment('one')
    await using first = place.serve(...flags)
    await first.object({ type: 'hook', state: 'caught up', arrived: 1 })
    const home = { RELAY_HOME: emptyFolder() }
    await using second = new Program(['serve', '--port', '0', '--json', ...flags], { ...place.env, ...home })
    await second.url()
    await place.comment('two')
    await first.objects({ type: 'delivery', event: 'issue_comment' }, 2)
    await first.stop('SIGKILL')
    await place.comment('three')
    await second.object({ type: 'hook', state: 'leads here' })
    await second.object({ type: 'hook', state: 'caught up' })
    const stored = "SELECT count(*)::int FROM relay_default.delivery WHERE event = 'issue_comment'"
    await expect
      .poll(async () => (await server.run(stored)).rows, { timeout: 30_000 })
      .toEqual([{ count: 3 }])
    const { code, out } = await second.stop()
    expect(code).toBe(0)
    // While the first ran, it had no part in the webhook.
    const events = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    expect(events.find(({ type }) => type === 'hook')).toMatchObject({ state: 'leads here' })
    expect(events.filter(({ event }) => event === 'issue_comment')).toHaveLength(1)
  }, 60_000)
})
