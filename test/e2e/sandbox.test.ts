import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { listen } from '../../src/http/listen.js'
import { startSandbox } from '../../src/testing/index.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { action, CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'
import { signIn } from '../helpers/sign-in.js'

const SERVE = ['serve', '--port', '0', '--json']
const SANDBOX = [...SERVE, '--sandbox', '--sandbox-port', '0']

/** Where each user's token in the profile `sandbox` comes from. */
async function origins(home: string): Promise<Record<string, string | undefined>> {
  await using database = await openDatabase({ kind: 'file', folder: path.join(home, 'sandbox') })
  const tokens = createTokens(database.store)
  const from: Record<string, string | undefined> = {}
  for (const key of await database.store.list('token:')) {
    const userId = key.slice('token:'.length)
    from[userId] = (await tokens.get(userId))?.origin
  }
  return from
}

describe('relay serve --sandbox', () => {
  it('that is refused, the profile being served, leaves the tokens of the other alone', async () => {
    const home = emptyFolder()
    const env = { RELAY_HOME: home }
    await using program = new Program(SANDBOX, env)
    const { url, sandbox } = await program.listening()
    await signIn(url, 'ada')
    expect(await relay(SANDBOX, env)).toMatchObject({ code: 1, out: '' })
    expect(await origins(home)).toEqual({ ada: sandbox })

    const { out } = await relay(['token', '--user', 'ada'], { ...env, RELAY_PROFILE: 'sandbox' })
    const reaction = { owner: 'octo', repo: 'demo', issueNumber: 1, content: 'rocket' }
    const answer = await fetch(`${url}/api/react`, action(out.trim(), reaction))
    expect(answer.status).toBe(200)
  })

  it('forgets the tokens of an earlier sandbox, and no others', async () => {
    const home = emptyFolder()
    await using elsewhere = await startSandbox({ client: CLIENT })
    const env = { RELAY_HOME: home, RELAY_PROFILE: 'sandbox', ...codeHost(elsewhere) }
    await using ordinary = new Program(SERVE, env)
    await signIn(await ordinary.url(), 'grace')
    await ordinary.stop()

    await using first = new Program(SANDBOX, { RELAY_HOME: home })
    const { url, sandbox } = await first.listening()
    await signIn(url, 'ada')
    await first.stop()
    expect(await origins(home)).toEqual({ ada: sandbox, grace: elsewhere.url })
    await using second = new Program(SANDBOX, { RELAY_HOME: home })
    await second.url()
    await second.stop()
    expect(await origins(home)).toEqual({ grace: elsewhere.url })
  })

  it('names --sandbox-port when that port is in use, exit 1', async () => {
    const other = await listen(() => new Response(), { host: '127.0.0.1', port: 0, log: silentLog })
    const args = [...SERVE, '--sandbox', '--sandbox-port', String(other.port)]
    const { code, out, err } = await relay(args)
    await other.close()
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(
      `Port ${other.port} is in use. Choose another with --sandbox-port, or 0 for any free port.`,
    )
  })
})
