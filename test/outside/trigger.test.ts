import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Webhooks } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import { type Fixture, loadFixtures } from 'webhook-relay/testing'
import { SECRET, sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { BUILT, run } from '../kit/run.js'
import { GITEA_TRIGGERS, GITHUB_TRIGGERS, objects } from './example.js'

const env = { RELAY_WEBHOOK_SECRET: SECRET }

describe('relay trigger --print', () => {
  it.each([
    ['github', GITHUB_TRIGGERS],
    ['gitea', GITEA_TRIGGERS],
  ])(
    '%s: all are fixtures, and genuine to relay and to others',
    async (provider, all) => {
      // Each is a process of its own in a built run, for which some are enough.
      const triggers = BUILT ? all.filter((_, i) => i % 4 === 0) : all
      const cwd = emptyFolder()
      const print = async (trigger: string): Promise<void> => {
        const argv = ['trigger', trigger, '--print', '--provider', provider]
        const { code, out, err } = await run(argv, { env })
        expect({ trigger, code, err }).toEqual({ trigger, code: 0, err: '' })
        writeFileSync(path.join(cwd, `${trigger}.json`), out)
      }
      for (const trigger of triggers) await print(trigger)
      const fixtures = await loadFixtures(cwd)
      const events = fixtures.map(({ fixture: { event, body = '' } }) => [event, JSON.parse(body).action])
      const named = triggers.toSorted().map((trigger) => trigger.split('.'))
      expect(events).toEqual(named.map(([event, action]) => [event, action]))
      expect((await run(['verify', '.'], { env, cwd })).code).toBe(0)
      const webhooks = new Webhooks({ secret: SECRET })
      for (const { fixture } of fixtures) {
        const signature = String(fixture.headers['X-Hub-Signature-256'])
        expect(await webhooks.verify(fixture.body ?? '', signature)).toBe(true)
      }
    },
    60_000,
  )
})

describe('relay trigger', () => {
  it('sends to the running relay, which accepts it', async () => {
    await using here = await place({ host: 'none' })
    await here.serve()
    const ran = await here.run('trigger', 'issues')
    expect({ ...ran, out: ran.out.replace(/\d+ms/, 'Nms') }).toEqual({
      code: 0,
      out: 'ok   issues  200  Nms\n',
      err: '1 sent\n',
    })
    const { out } = await here.run('log', '--json')
    expect(JSON.parse(out)).toMatchObject({ event: 'issues', action: 'opened', repo: 'octo/demo', number: 1 })
  })

  it('prints a sentence on a terminal: the answer, and the entry or the address', async () => {
    await using here = await place({ host: 'none' })
    await here.serve()
    await here.run('trigger', 'push')
    const shown = async (...argv: string[]): Promise<string> => {
      const { out } = await here.runWith({ terminal: {} }, 'trigger', ...argv, '--color', 'never')
      return out.replace(/\b[\d.]+m?s\b/, 'TIME')
    }
    expect(await shown('issues.opened')).toBe('Sent issues.opened: answered 200 in TIME, entry #2\n')
    await using target = await receiver(202)
    expect(await shown('push', '--to', target.url)).toBe(
      `Sent push: answered 202 in TIME, by ${target.url}\n`,
    )
    expect(await shown('push', '--tamper', 'signature')).toMatch(/^FAIL push {2}401 {2}TIME {2}expected 2xx/)
  })

  it('changes fields, spoils signatures, and expects', async () => {
    await using target = await receiver(401)
    const argv = ['trigger', 'issue_comment.created', '--to', target.url, '--set', 'comment.body=/merge']
    expect((await run(argv, { env })).code).toBe(3)
    expect((await run([...argv, '--tamper', 'signature', '--expect', '401'], { env })).code).toBe(0)
    const fits = target.received.map((handed) => {
      expect(JSON.parse(handed.body.toString()).comment.body).toBe('/merge')
      const [signature] = valuesOf(handed, 'x-hub-signature-256')
      return signature === sign(SECRET, handed.body)
    })
    expect(fits).toEqual([true, false])
  })

  it('prints an unsigned fixture where there is no secret, which replay signs', async () => {
    const { code, out } = await run(['trigger', 'push', '--print', '--provider', 'gitea'])
    const fixture: Fixture = JSON.parse(out)
    expect([code, fixture.provider, fixture.headers['X-Hub-Signature-256']]).toEqual([0, 'gitea', undefined])
  })

  it('lists what there is', async () => {
    expect((await run(['trigger', '--list'])).out.trim().split('\n')).toEqual(GITHUB_TRIGGERS)
    const { out } = await run(['trigger', '--list', '--provider', 'gitea', '--json'])
    const listed = GITEA_TRIGGERS.map((trigger) => trigger.split('.'))
    expect(objects(out)).toEqual(
      listed.map(([event, action = null]) => ({ v: 1, type: 'event', event, action })),
    )
  })

  it.each<[string, number, RegExp]>([
    ['trigger', 2, /No event given. relay trigger --list lists them/],
    ['trigger nonsense --to http://localhost:1', 2, /no template for "nonsense"/],
    ['trigger push', 1, /relay serve, or name an address with --to/],
    ['trigger push --to http://127.0.0.1:1', 3, /1 of 1 answers were not/],
    ['trigger push --print --provider svn', 2, /--provider: must be one of/],
  ])('%s: %i', async (line, code, err) => {
    expect(await run(line.split(' '), { env })).toMatchObject({ code, err: expect.stringMatching(err) })
  })

  it('needs a secret to send', async () => {
    const ran = await run(['trigger', 'push', '--to', 'http://127.0.0.1:1'])
    expect(ran).toMatchObject({ code: 2, err: expect.stringMatching(/no webhook secret to sign with/) })
  })
})
