import type { TestSandbox } from '../../src/testing/index.js'
import { register } from '../cli/commands/setup/rig.js'
import { installApp } from './app.js'
import { type Ended, Program } from './program.js'

/** The address that a command has printed for the browser. */
export async function addressOf(program: Program): Promise<string> {
  await program.says('Waiting up to')
  return /\n {2}(http\S+)\n/.exec(program.err)?.[1] ?? ''
}

/** Runs the built `relay setup --app-hook`, registers the App as a person does in the browser, and installs it. */
export async function setUpApp(
  sandbox: Pick<TestSandbox, 'idle'>,
  env: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): Promise<{ readonly ended: Ended; readonly slug: string; readonly pid: number }> {
  await using program = new Program(['setup', '--app-hook', '--no-browser', '--json', ...flags], env)
  await register(await addressOf(program))
  const ended = await program.ended
  if (ended.code !== 0) throw new Error(ended.err)
  const { app }: { app: { slug: string; installUrl: string } } = JSON.parse(ended.out)
  await installApp(app.installUrl)
  await sandbox.idle()
  return { ended, slug: app.slug, pid: program.pid }
}
