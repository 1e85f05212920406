import { describe, expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { action, CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { begin, finish, githubDelivery } from '../helpers/delivery.js'
import { Program, relay } from '../helpers/program.js'
import { journalOf, serve, textOf } from '../helpers/serve.js'
import { signIn } from '../helpers/sign-in.js'

describe.concurrent('relay serve, asked to stop,', () => {
  it('answers a delivery that is under way, and keeps it', async () => {
    const home = emptyFolder()
    await using program = serve(home)
    const delivery = githubDelivery({ body: '{"kept":true}' })
    const request = await begin(`${await program.url()}/webhook`, delivery)
    program.child.kill('SIGTERM')
    await program.says('Finishing in-flight work')
    expect(await finish(request, delivery)).toBe(200)
    expect((await program.ended).code).toBe(0)
    expect((await journalOf(home)).map(textOf)).toEqual(['{"kept":true}'])
  })

  it('quits at once at the second signal', async () => {
    await using program = serve(emptyFolder())
    const hanging = await begin(`${await program.url()}/webhook`, githubDelivery())
    hanging.on('error', () => {})
    program.child.kill('SIGTERM')
    await program.says('Finishing in-flight work')
    program.child.kill('SIGTERM')
    expect(await program.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  })

  it('waits for an action that takes longer than most', async ({ expect }) => {
    await using sandbox = await startSandbox({ client: CLIENT })
    const env = { RELAY_HOME: emptyFolder(), ...codeHost(sandbox) }
    await using program = new Program(['serve', '--port', '0', '--json'], env)
    const url = await program.url()
    await signIn(url, 'ada')
    const { out: token } = await relay(['token', '--user', 'ada'], env)
    sandbox.faults.next('comment', { kind: 'slow', ms: 12_000 })
    const comment = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'late' }
    const answer = fetch(`${url}/api/comment`, action(token.trim(), comment))
    await expect.poll(() => sandbox.requests.at(-1)?.path).toMatch(/\/comments$/)
    program.child.kill('SIGTERM')
    await program.says('Finishing in-flight work')
    expect((await answer).status).toBe(200)
    expect(sandbox.comments.map(({ body }) => body)).toEqual(['late'])
    expect((await program.ended).code).toBe(0)
  })
})
