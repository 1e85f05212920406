import { expect, it } from 'vitest'
import { checkMachine, diagnose } from '../../src/cli/checks/diagnose.js'
import { settle } from '../../src/cli/checks/check.js'
import { openProfile } from '../../src/cli/profile.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from './cli-shell.js'

const MIB = 1_048_576
const FINE = { node: '20.18.0', type: 0xef53, free: 1024 * MIB }
const INSTALL = 'install Node 20.18 or later: https://nodejs.org'
const MOVE = 'set RELAY_HOME to a folder on a disk of this machine'

it.each<[Partial<typeof FINE>, state: string, text: RegExp, fix?: string]>([
  [{ node: '20.17.9' }, 'fail', /^Node 20\.17\.9 is older than 20\.18$/, INSTALL],
  [{ node: '22.0.0' }, 'ok', /^Node 22\.0\.0; .*; 1,024 MiB free$/],
  [{ free: 15 * MIB }, 'fail', /^15 MiB free: deliveries are refused below 16 MiB$/],
  [{ type: 0x6969 }, 'fail', / network file system \(NFS\)/, MOVE],
  [{ type: 0x517b }, 'fail', / network file system \(SMB\)/, MOVE],
  [{ type: 0xff534d42 }, 'fail', / network file system \(CIFS\)/, MOVE],
  [{ type: 0xfe534d42 }, 'fail', / network file system \(SMB2\)/, MOVE],
  [{ type: 0x01021997 }, 'fail', / network file system \(9P\)/, MOVE],
])('the check of a machine with %j: %s', async (machine, state, text, fix) => {
  const checked = async (store: string) => {
    const { shell } = testShell({ env: { RELAY_HOME: emptyFolder(), RELAY_STORE: store } })
    const profile = await openProfile(shell, {}, { mustExist: false, problems: 'report' })
    return settle(async () => checkMachine(profile, { ...FINE, ...machine }))
  }
  const found = { state, text: expect.stringMatching(text), ...(fix && { fix }) }
  expect(await checked('file')).toMatchObject(found)
  expect(await checked('memory')).toMatchObject({ state: machine.node ? state : 'ok' })
})

it('has a result of the code host for an address to which no secret may go', async () => {
  const env = { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://git.example' }
  const checks = await diagnose(testShell({ env: { ...env, RELAY_PORT: '0' } }).shell, {})
  expect(checks.find(({ check }) => check === 'code host')).toMatchObject({
    state: 'fail',
    text: "The provider's address must be https, unless it is on this machine",
  })
})
