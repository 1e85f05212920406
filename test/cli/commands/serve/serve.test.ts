import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../../src/base/log.js'
import type { Run } from '../../../../src/cli/command.js'
import { serve } from '../../../../src/cli/commands/serve/declaration.js'
import { declare } from '../../../../src/cli/declare.js'
import { type Flags, readOptions } from '../../../../src/cli/settings/read.js'
import { testContext } from '../../../helpers/context.js'

/** What `--tunnel` comes to. */
async function tunnelOf(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<string | undefined> {
  const { context } = testContext({ env })
  const program = new Command()
  let flags: Flags = {}
  const run: Run = async (_, given) => void (flags = given)
  declare(program, { ...serve, load: async () => run }, context)
  await program.parseAsync(['serve', ...args], { from: 'user' })
  return readOptions(context, flags, silentLog).options.tunnel
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

  it('can also be set in the environment', async () => {
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
