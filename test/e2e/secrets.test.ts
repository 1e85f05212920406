import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { startSandbox } from '../../src/sandbox/start.js'
import { sign } from '../../src/webhook/signature.js'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'
import { signIn } from '../helpers/sign-in.js'

const CLIENT_SECRET = 'canary-client-secret'
const WEBHOOK_SECRET = 'canary-webhook-secret'
const PREVIOUS_SECRET = 'canary-previous-secret'

/** A whole run with everything that can be said being said, so that what must not be said would show. */
describe('no secret', () => {
  it('is in any log line, answer or stack trace of a full run', async () => {
    await using sandbox = await startSandbox({ clientId: 'client', clientSecret: new Secret(CLIENT_SECRET) })
    const env = {
      RELAY_HOME: emptyFolder(),
      RELAY_DEBUG: '1',
      RELAY_PROVIDER: 'sandbox',
      RELAY_PROVIDER_URL: sandbox.url,
      RELAY_CLIENT_ID: 'client',
      RELAY_CLIENT_SECRET: CLIENT_SECRET,
      RELAY_WEBHOOK_SECRET: WEBHOOK_SECRET,
      RELAY_WEBHOOK_SECRET_PREVIOUS: PREVIOUS_SECRET,
    }
    await using program = new Program(['serve', '--port', '0', '--json', '--verbose'], env)
    const url = await program.url()
    const answers: string[] = []
    const call = async (path: string, init?: RequestInit): Promise<number> => {
      const response = await fetch(`${url}${path}`, { redirect: 'manual', ...init })
      answers.push(JSON.stringify([...response.headers]), await response.text())
      return response.status
    }

    // Sign-in, well and badly.
    const { code, state } = await signIn(url, 'ada')
    sandbox.faults.next('token', '502')
    await signIn(url, 'bob')
    sandbox.faults.next('token', 'invalid-json')
    await signIn(url, 'bob')
    expect(await call(`/auth/sandbox/callback?code=${code}&state=${state}`)).toBe(302)
    const token = (await relay(['token', '--user', 'ada'], env)).out.trim()
    expect(token).toMatch(/^gho_/)

    // Actions: one that works, and one for each way to fail.
    const action = (path: string, body: unknown, bearer = token): Promise<number> =>
      call(path, {
        method: 'POST',
        headers: { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
    const comment = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }
    expect(await action('/api/comment', comment)).toBe(200)
    expect(await action('/api/comment', { ...comment, owner: '..' })).toBe(400)
    expect(await action('/api/comment', { ...comment, issueNumber: 404 })).toBe(404)
    expect(await action('/api/comment', comment, `${token}x`)).toBe(401)
    for (const fault of ['502', 'rate-limit', 'reset', 'reset-after', 'invalid-json'] as const) {
      sandbox.faults.next('comment', fault)
      expect([429, 502]).toContain(await action('/api/comment', comment))
    }

    // Deliveries: with either secret, with a wrong one, and broken.
    const deliver = (secret: string, body: string): Promise<number> =>
      call('/webhook', {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'X-GitHub-Event': 'push',
          'X-GitHub-Delivery': `${secret.length}`,
          'X-Hub-Signature-256': sign(secret, Buffer.from(body)),
        },
        body,
      })
    expect(await deliver(WEBHOOK_SECRET, '{}')).toBe(200)
    expect(await deliver(PREVIOUS_SECRET, '{}')).toBe(200)
    expect(await deliver('wrong', '{}')).toBe(401)
    expect(await deliver(WEBHOOK_SECRET, '{')).toBe(400)
    expect(await call('/auth/token/ada', { method: 'DELETE' })).toBe(200)

    const { code: exit, out, err } = await program.stop()
    expect(exit).toBe(0)
    const said = [out, err, ...answers].join('\n')
    expect(said.length).toBeGreaterThan(2000)
    const secrets = { CLIENT_SECRET, WEBHOOK_SECRET, PREVIOUS_SECRET, token, code, state }
    expect(
      Object.entries(secrets).flatMap(([name, secret]) => (said.includes(secret) ? [name] : [])),
    ).toEqual([])
  })

  it('is in a failed start', async () => {
    const { code, out, err } = await relay(['serve', '--json', '-v'], {
      RELAY_DEBUG: '1',
      RELAY_CLIENT_SECRET: CLIENT_SECRET,
      RELAY_WEBHOOK_SECRET: WEBHOOK_SECRET,
    })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('RELAY_CLIENT_ID')
    expect(err).not.toMatch(/canary/)
  })
})
