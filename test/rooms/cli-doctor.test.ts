import { describe, expect, it } from 'vitest'
import { checkMachine, diagnose } from '../../src/cli/commands/doctor.js'
import { settle } from '../../src/cli/commands/doctor-host.js'
import { attach } from '../../src/cli/profile.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from './cli-shell.js'

const MIB = 1_048_576
const FINE = { node: '20.18.0', type: 0xef53, free: 1024 * MIB }

async function checked(machine: Partial<typeof FINE>, store = 'file') {
  const { shell } = testShell({ env: { RELAY_HOME: emptyFolder(), RELAY_STORE: store } })
  const attached = await attach(shell, {}, 'tolerant')
  return settle(async () => checkMachine(attached, { ...FINE, ...machine }))
}

describe('the check of the machine', () => {
  it('knows the oldest Node', async () => {
    expect(await checked({ node: '20.17.9' })).toEqual({
      state: 'fail',
      text: 'Node 20.17.9 is older than 20.18',
      fix: 'install Node 20.18 or later: https://nodejs.org',
    })
    expect(await checked({ node: '22.0.0' })).toMatchObject({ state: 'ok' })
  })

  it.each([
    ['has room', 1024, 'ok', '; 1,024 MiB free'],
    ['is almost full', 15, 'fail', '15 MiB free: deliveries are refused below 16 MiB'],
  ])('sees that the disk %s', async (_, free, state, end) => {
    const { text, ...found } = await checked({ free: free * MIB })
    expect([found.state, text.endsWith(end)]).toEqual([state, true])
  })

  it.each([
    ['NFS', 0x6969],
    ['SMB', 0x517b],
    ['CIFS', 0xff534d42],
    ['SMB2', 0xfe534d42],
    ['9P', 0x01021997],
  ])('finds a network file system: %s', async (name, type) => {
    expect(await checked({ type })).toMatchObject({
      state: 'fail',
      text: expect.stringContaining(`network file system (${name})`),
      fix: 'set RELAY_HOME to a folder on a disk of this machine',
    })
    expect(await checked({ type }, 'memory')).toMatchObject({ state: 'ok' })
  })
})

it('has a result of the code host for an address to which no secret may go', async () => {
  const env = { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://git.example' }
  const checks = await diagnose(testShell({ env: { ...env, RELAY_PORT: '0' } }).shell, {})
  expect(checks.find(({ check }) => check === 'code host')).toMatchObject({
    state: 'fail',
    text: "The provider's address must be https, unless it is on this machine",
  })
})
