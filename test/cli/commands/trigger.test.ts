import { Webhooks } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { type Fixture, fixtureBody } from '../../../src/fixtures/fixture.js'
import { parseFixture } from '../../helpers/fixture.js'
import { triggers } from '../../../src/sandbox/synthesize.js'
import { verify } from '../../helpers/sign.js'
import { startTarget, valuesOf } from '../../helpers/target.js'
import { onTerminal, shell, startServed } from '../rig.js'

const SECRET = 'trigger-secret'
const env = { RELAY_WEBHOOK_SECRET: SECRET }

describe('relay trigger --print', () => {
  it.each(['github', 'gitea'])(
    '%s: all are fixtures, and genuine to relay and to others',
    async (provider) => {
      const here = shell({ ...env, RELAY_PROVIDER: provider })
      const webhooks = new Webhooks({ secret: SECRET })
      for (const trigger of triggers(provider)) {
        const { code, out, err } = await here.run(['trigger', trigger, '--print'])
        expect({ trigger, code, err }).toEqual({ trigger, code: 0, err: '' })
        const fixture = parseFixture(out, trigger)
        const [event, action] = trigger.split('.')
        const body = Buffer.from(fixtureBody(fixture)).toString()
        expect([fixture.event, JSON.parse(body).action]).toEqual([event, action])
        const signature = String(fixture.headers['X-Hub-Signature-256'])
        expect(await webhooks.verify(body, signature)).toBe(true)
      }
    },
  )
})

describe('relay trigger', () => {
  it('sends to the running relay, which accepts it', async () => {
    await using served = await startServed()
    const over = { env: { RELAY_WEBHOOK_SECRET: 'secret' } }
    const ran = await served.shell.run(['trigger', 'issues'], over)
    expect({ ...ran, out: ran.out.replace(/\d+ms/, 'Nms') }).toEqual({
      code: 0,
      out: 'ok   issues  200  Nms\n',
      err: '1 sent\n',
    })
    const { out } = await served.shell.run(['log', '--json'])
    expect(JSON.parse(out)).toMatchObject({ event: 'issues', action: 'opened', repo: 'octo/demo', number: 1 })
  })

  it('prints a sentence on a terminal: the answer, and the entry or the address', async () => {
    await using served = await startServed()
    const here = shell({ RELAY_WEBHOOK_SECRET: 'secret' }, served.shell.home)
    await here.run(['trigger', 'push'])
    const shown = async (...argv: string[]): Promise<string> =>
      (await onTerminal(here, ['trigger', ...argv])).replace(/\b[\d.]+m?s\b/, 'TIME')
    expect(await shown('issues.opened')).toBe('Sent issues.opened: answered 200 in TIME, entry #2\n')
    await using target = await startTarget(() => 202)
    expect(await shown('push', '--to', target.url)).toBe(
      `Sent push: answered 202 in TIME, by ${target.url}\n`,
    )
    expect(await shown('push', '--tamper', 'signature')).toMatch(/^FAIL push {2}401 {2}TIME {2}expected 2xx/)
  })

  it('changes fields, spoils signatures, and expects', async () => {
    await using target = await startTarget(() => 401)
    const argv = ['trigger', 'issue_comment.created', '--to', target.url, '--set', 'comment.body=/merge']
    expect((await shell(env).run(argv)).code).toBe(3)
    expect((await shell(env).run([...argv, '--tamper', 'signature', '--expect', '401'])).code).toBe(0)
    const fits = target.received.map((handed) => {
      expect(JSON.parse(handed.body.toString()).comment.body).toBe('/merge')
      const [signature] = valuesOf(handed, 'x-hub-signature-256')
      return verify(signature, handed.body, { current: new Secret(SECRET) })
    })
    expect(fits).toEqual(['current', undefined])
  })

  it('prints an unsigned fixture where there is no secret, which replay signs', async () => {
    const { code, out } = await shell().run(['trigger', 'push', '--print', '--provider', 'gitea'])
    const fixture: Fixture = JSON.parse(out)
    expect([code, fixture.provider, fixture.headers['X-Hub-Signature-256']]).toEqual([0, 'gitea', undefined])
  })

  it('lists what there is', async () => {
    const { out } = await shell().run(['trigger', '--list'])
    expect(out.trim().split('\n')).toEqual(triggers('github'))
    const { out: objects } = await shell().run(['trigger', '--list', '--provider', 'gitea', '--json'])
    expect(objects).toContain('{"v":1,"type":"event","event":"pull_request","action":"synchronized"}\n')
  })

  it.each<[string, number, RegExp]>([
    ['trigger', 2, /No event given. relay trigger --list lists them/],
    ['trigger nonsense --to http://localhost:1', 2, /no template for "nonsense"/],
    ['trigger push', 1, /relay serve, or name an address with --to/],
    ['trigger push --to http://127.0.0.1:1', 3, /1 of 1 answers were not/],
    ['trigger push --print --provider svn', 2, /--provider: must be one of/],
  ])('%s: %i', async (line, code, err) => {
    expect(await shell(env).run(line.split(' '))).toMatchObject({ code, err: expect.stringMatching(err) })
  })

  it('needs a secret to send', async () => {
    const ran = await shell().run(['trigger', 'push', '--to', 'http://127.0.0.1:1'])
    expect(ran).toMatchObject({ code: 2, err: expect.stringMatching(/no webhook secret to sign with/) })
  })
})
