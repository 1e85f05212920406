import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../../src/base/log.js'
import type { Run } from '../../../../src/old/command.js'
import { serve } from '../../../../src/old/commands/serve/declaration.js'
import { declare } from '../../../../src/old/declare.js'
import { type Flags, readOptions } from '../../../../src/old/settings/read.js'
import { testContext } from '../../../helpers/context.js'

/** What `--tunnel` comes to, with the user's own file. */
async function tunnelOf(
  args: readonly string[],
  env: Record<string, string> = {},
  file: object = {},
): Promise<string | undefined> {
  const { context } = testContext({ env })
  writeFileSync(path.join(context.configFolder, 'config.json'), JSON.stringify(file))
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

  it('without a URL uses the channel of the environment or the user, and wins only over none', async () => {
    const own = { RELAY_TUNNEL: 'http://127.0.0.1:3000/a' }
    expect(await tunnelOf(['--tunnel', '--metrics'], own)).toBe(own.RELAY_TUNNEL)
    expect(await tunnelOf(['--tunnel', 'new'], own)).toBe('new')
    const file = { tunnel: 'https://smee.example.com/b', profiles: { work: { tunnel: 'https://smee.io/c' } } }
    expect(await tunnelOf(['--tunnel'], {}, file)).toBe('https://smee.example.com/b')
    expect(await tunnelOf(['--tunnel'], { RELAY_PROFILE: 'work' }, file)).toBe('https://smee.io/c')
    expect(await tunnelOf(['--tunnel'], own, file)).toBe(own.RELAY_TUNNEL)
    expect(await tunnelOf(['--tunnel'], {}, { profiles: { work: file.profiles.work } })).toBe(
      'https://smee.io',
    )
  })

  it('is encrypted, unless the server is on this machine', async () => {
    expect(await tunnelOf(['--tunnel', 'http://localhost:3000'])).toBe('http://localhost:3000')
    for (const server of ['smee.io', '192.168.0.2:3000', 'localhost.example'])
      await expect(tunnelOf(['--tunnel', `http://${server}/a`])).rejects.toThrow(
        '--tunnel: must be https, unless it is on this machine',
      )
  })
})
