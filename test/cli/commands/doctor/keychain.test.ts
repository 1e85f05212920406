import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, it } from 'vitest'
import type { NamedResult } from '../../../../src/old/commands/doctor/result.js'
import { openDatabase } from '../../../../src/store/open.js'
import { emptyFolder } from '../../../helpers/context.js'
import { keyring, startSession } from '../../../kit/keyring.js'
import type { Env } from '../../../kit/folder.js'
import { describeWith } from '../../../kit/needs.js'

/** What the doctor says of the keychain in a D-Bus session. */
async function keychain(env: Env): Promise<NamedResult | undefined> {
  const home = emptyFolder()
  const database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  await database[Symbol.asyncDispose]()
  const args = ['--import', 'tsx', 'bin/relay.ts', 'doctor', '--json', '--store', 'keychain', '--port', '0']
  const { stdout } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { HOME: home, ...env, PATH: process.env['PATH'], RELAY_HOME: home, RELAY_PROVIDER: 'sandbox' },
  })
  const { checks }: { checks: NamedResult[] } = JSON.parse(stdout)
  return checks.find(({ check }) => check === 'keychain')
}

describeWith('keyring', 'the check of the keychain', () => {
  it('writes to it and reads from it', async () => {
    expect(await keychain((await keyring()).env)).toEqual({
      check: 'keychain',
      state: 'ok',
      text: 'unlocked; can write and read',
    })
  })

  it('says that there is none, and what to do', async () => {
    await using session = await startSession()
    expect(await keychain(session.env)).toEqual({
      check: 'keychain',
      state: 'fail',
      text: expect.stringContaining('--store file'),
      fix: 'unlock the keychain, or choose --store file',
    })
  })
})
