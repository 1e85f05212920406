import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../../src/base/log.js'
import { createCheckContext } from '../../../../src/old/commands/doctor/context.js'
import { checkDisk } from '../../../../src/old/commands/doctor/disk.js'
import { readOptions } from '../../../../src/old/settings/read.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'

const EXT4 = 0xef53
const MIB = 1_048_576
const GIB = 1024 * MIB

function profile() {
  const { context } = testContext({ env: { RELAY_HOME: emptyFolder() } })
  const loaded = readOptions(context, {}, silentLog)
  return createCheckContext({ ...loaded, instance: undefined }, undefined)
}

describe('the disk of a profile', () => {
  it.each([
    ['has room', GIB, 'ok', '1,024 MiB free'],
    ['gets full', 100 * MIB, 'ok', '100 MiB free; deliveries are refused below 16 MiB'],
    ['is almost full', 15 * MIB, 'fail', '15 MiB free: deliveries are refused below 16 MiB'],
  ])('%s', (_, free, state, text) => {
    expect(checkDisk(profile(), { type: EXT4, free })).toMatchObject({ state, text })
  })

  it.each([
    ['NFS', 0x6969],
    ['SMB', 0x517b],
    ['CIFS', 0xff534d42],
    ['SMB2', 0xfe534d42],
    ['9P', 0x01021997],
  ])('must not be a network file system: %s', (name, type) => {
    expect(checkDisk(profile(), { type, free: GIB })).toMatchObject({
      state: 'fail',
      text: expect.stringContaining(`network file system (${name})`),
      fix: 'set RELAY_HOME to a folder on a disk of this machine',
    })
  })

  it('may be FUSE, which may be either', () => {
    expect(checkDisk(profile(), { type: 0x65735546, free: GIB })).toMatchObject({
      state: 'ok',
      text: '1,024 MiB free; the file system is FUSE, which must not be a network one',
    })
  })

  it('may hold data of an earlier development version', () => {
    const context = profile()
    mkdirSync(context.folder, { recursive: true })
    writeFileSync(path.join(context.folder, 'relay.mdb'), '')
    expect(checkDisk(context, { type: EXT4, free: GIB })).toMatchObject({
      state: 'ok',
      text: expect.stringContaining('relay.mdb of an earlier development version is not read: delete it'),
    })
  })
})
