import { createProvider } from '../../src/providers/open.js'
import type { RepoHook } from '../../src/providers/hooks.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from './code-host.js'
import { emptyFolder } from './context.js'
import { type Ended, Program, relay } from './program.js'
import { signIn } from './sign-in.js'

/** The repository that has the hooks. */
export const REPO = { owner: 'octo', repo: 'demo' }

/** What signs the deliveries. */
export const HOOK_SECRET = 'canary-webhook-secret'

/** A code host with a signed-in user, for the built program. */
export interface HookHost extends AsyncDisposable {
  readonly sandbox: TestSandbox
  /** The data folder of the programs. */
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  /** Starts `relay serve --json` on a free port. */
  serve(...flags: string[]): Program
  /** Starts another command. */
  start(...argv: string[]): Program
  /** Runs another command to its end. */
  relay(...argv: string[]): Promise<Ended>
  hooks(): Promise<readonly RepoHook[]>
  /** Makes the sandbox send one delivery for each of `comment <from>` up to `comment <to - 1>`, in order. */
  comment(from: number, to: number): Promise<void>
}

export async function startHookHost(): Promise<HookHost> {
  const sandbox = await startSandbox({ client: CLIENT })
  const home = emptyFolder()
  const env = { RELAY_HOME: home, RELAY_USER: 'ada', RELAY_WEBHOOK_SECRET: HOOK_SECRET, ...codeHost(sandbox) }
  const args = ['serve', '--port', '0', '--json']
  {
    await using program = new Program(args, env)
    await signIn(await program.url(), 'ada')
    await program.stop()
  }
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  return {
    sandbox,
    home,
    env,
    serve: (...flags) => new Program([...args, ...flags], env),
    start: (...argv) => new Program(argv, env),
    relay: (...argv) => relay(argv, env),
    hooks: () => provider.hooks.list(token, REPO),
    async comment(from, to) {
      for (let n = from; n < to; n++) {
        await provider.comment(token, { ...REPO, issueNumber: 1, body: `comment ${n}` })
        await sandbox.idle()
      }
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}
