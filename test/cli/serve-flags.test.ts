import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { declareServe } from '../../src/cli/commands/serve.js'
import { readOptions, type Flags } from '../../src/cli/settings/read.js'
import { testContext } from '../helpers/context.js'

/** What `--tunnel` comes to. */
async function tunnelOf(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<string | undefined> {
  const { context } = testContext({ env })
  const program = new Command()
  let given: Flags = {}
  declareServe(program.command('serve'), context, async (_, flags) => void (given = flags))
  await program.parseAsync(['serve', ...args], { from: 'user' })
  return readOptions(context, given, silentLog).options.tunnel
}

describe('serve --tunnel', () => {
  it.each([
    [[], undefined],
    [['--tunnel'], 'https://smee.io'],
    [['--tunnel', '--sandbox'], 'https://smee.io'],
    [['--tunnel', 'https://smee.io/Kf3v/'], 'https://smee.io/Kf3v'],
    [['--tunnel=https://smee.example.com'], 'https://smee.example.com'],
  ])('%j', async (args, tunnel) => {
    expect(await tunnelOf(args)).toBe(tunnel)
  })

  it('may be said by the environment too', async () => {
    expect(await tunnelOf([], { RELAY_TUNNEL: 'http://127.0.0.1:3000/a' })).toBe('http://127.0.0.1:3000/a')
    await expect(tunnelOf(['--tunnel', 'smee.io/a'])).rejects.toThrow('--tunnel: must be an absolute')
  })

  it('is encrypted, unless the server is on this machine', async () => {
    expect(await tunnelOf(['--tunnel', 'http://localhost:3000'])).toBe('http://localhost:3000')
    for (const server of ['smee.io', '192.168.0.2:3000', 'localhost.example'])
      await expect(tunnelOf(['--tunnel', `http://${server}/a`])).rejects.toThrow(
        '--tunnel: must be https, unless it is on this machine',
      )
  })
})
