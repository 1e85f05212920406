import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import {
  eventually,
  helpersOf,
  isAlive,
  readProc,
  startKeyring,
  startSession,
  startSilentSession,
} from '../helpers/keyring.js'
import { describeWith } from '../helpers/needs.js'
import { Program, relay } from '../helpers/program.js'
import { signIn } from '../helpers/sign-in.js'

const SERVE = ['serve', '--store', 'keychain', '--port', '0', '--json']
const SANDBOX = [...SERVE, '--sandbox', '--sandbox-port', '0']
const UNLOCK =
  'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring), or use --store file'

async function react(url: string, token: string): Promise<number> {
  const answer = await fetch(`${url}/api/react`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, content: 'rocket' }),
  })
  return answer.status
}

/** All that lies below a folder, as one text. */
function everything(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((file) => readFileSync(path.join(file.parentPath, file.name), 'latin1')).join('\n')
}

describeWith('keyring', 'relay --store keychain', () => {
  it('signs in, acts and signs out, and shows the token to no other program', async () => {
    await using keyring = await startKeyring()
    const home = emptyFolder()
    const env = { ...keyring.env, RELAY_HOME: home, RELAY_STORE: 'keychain' }
    await using program = new Program(SANDBOX, env)
    const { url } = await program.listening()
    await program.says('tokens in the keychain')
    expect((await signIn(url, 'ada')).location).toBe(`${url}/?auth=success&userId=ada`)

    const other = { ...env, RELAY_PROFILE: 'sandbox', RELAY_USER: 'ada' }
    const { out, ...rest } = await relay(['token'], other)
    expect(rest).toEqual({ code: 0, signal: null, err: '' })
    const token = out.trim()
    expect(token).toMatch(/^gho_/)
    expect(await react(url, token)).toBe(200)

    const [helper = 0] = helpersOf(program.pid)
    expect(readProc(helper, 'cmdline')).toMatch(/\/keychain-helper\.js\0$/)
    expect(readProc(helper, 'environ')).toContain('DBUS_SESSION_BUS_ADDRESS=')
    expect(readProc(helper, 'cmdline') + readProc(helper, 'environ')).not.toContain(token)
    expect(everything(home)).not.toContain(token)
    expect(everything(home)).toContain('sandbox-client')

    expect(await relay(['revoke', '--local'], other)).toEqual({
      code: 0,
      signal: null,
      out: '',
      err: 'the token of ada is deleted here, and not revoked at the code host\n',
    })
    expect(await react(url, token)).toBe(401)
    expect(await relay(['token'], other)).toMatchObject({ code: 4, out: '' })
    expect((await program.stop()).code).toBe(0)
    expect(isAlive(helper)).toBe(false)
  })

  it('continues to serve while D-Bus never answers, and says what to do', async () => {
    await using session = await startSilentSession()
    await using sandbox = await startSandbox({ client: CLIENT })
    const env = {
      ...session.env,
      RELAY_HOME: emptyFolder(),
      RELAY_STORE: 'keychain',
      ...codeHost(sandbox),
    }
    const message = `The keychain cannot be used: it did not answer within 3 s. ${UNLOCK}`
    await using program = new Program(SERVE, env)
    const url = await program.url()
    const began = performance.now()
    const signingIn = signIn(url, 'ada')
    let answers = 0
    await program.says(message)
    for (; answers < 100; answers++) expect((await fetch(`${url}/health`)).status).toBe(200)
    expect((await signingIn).location).toBe(`${url}/?auth=error&reason=storage_failed`)
    expect(performance.now() - began).toBeLessThan(12_000)

    expect(await relay(['token', '--user', 'ada'], env)).toEqual({
      code: 1,
      signal: null,
      out: '',
      err: `error: ${message}\n`,
    })
    expect((await program.stop()).code).toBe(0)
    await eventually(() => helpersOf(program.pid).length === 0 || undefined)
  })

  it('does not fall back to another store: where there is no keyring it says so, exit 1', async () => {
    await using session = await startSession()
    const home = emptyFolder()
    const env = { ...session.env, RELAY_HOME: home }
    expect(
      await relay(
        SANDBOX.filter((flag) => flag !== '--json'),
        env,
      ),
    ).toEqual({
      code: 1,
      signal: null,
      out: '',
      err: `error: The keychain cannot be used: The name org.freedesktop.secrets was not provided by any .service files. ${UNLOCK}\n`,
    })
  })
})
