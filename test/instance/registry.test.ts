import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { prove, type InstanceRecord } from '../../src/instance/record.js'
import {
  findRunning,
  publishInstance,
  secretPrint,
  type RunningInstance,
} from '../../src/instance/registry.js'
import { emptyFolder } from '../helpers/context.js'
import { answer, deadPid, serve } from './rig.js'

const KEY = Buffer.alloc(32, 7).toString('base64url')

function running(url: string, over: Partial<RunningInstance> = {}): RunningInstance {
  return {
    v: 1,
    pid: process.pid,
    url,
    provider: 'sandbox',
    providerUrl: 'http://127.0.0.1:1',
    publicUrl: url,
    clientId: null,
    maxBody: null,
    key: KEY,
    startedAt: '2026-01-01T00:00:00.000Z',
    profile: 'default',
    store: 'file',
    sandbox: true,
    secretPrint: '',
    madeSecret: null,
    ...over,
  }
}

const proving = (record: Pick<InstanceRecord, 'key'>) =>
  serve(answer((challenge) => prove(running('', record), challenge)))

describe('the registry of running instances', () => {
  it('has those that prove themselves, for their owner alone, until they end', async () => {
    await using one = await proving({ key: KEY })
    const home = emptyFolder()
    expect(await findRunning(home, {})).toEqual([])
    expect(readdirSync(home)).toEqual([])
    using entry = publishInstance(home, running(one.url))
    expect(await findRunning(home, {})).toEqual([running(one.url)])
    expect(await findRunning(home, { profile: 'other' })).toEqual([])
    const folder = path.join(home, '.running')
    const modes = [folder, path.join(folder, `default-${process.pid}.json`)].map(
      (file) => statSync(file).mode,
    )
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o600])
    entry[Symbol.dispose]()
    expect(await findRunning(home, {})).toEqual([])
    expect(readdirSync(folder)).toEqual([])
  })

  it('leaves out a process that is gone, another program at the address, and what it cannot read', async () => {
    await using stranger = await serve((_, response) => response.end('{"status":"ok"}'))
    const home = emptyFolder()
    publishInstance(home, running(stranger.url, { profile: 'moved' }))
    publishInstance(home, running(stranger.url, { profile: 'dead', pid: deadPid() }))
    writeFileSync(path.join(home, '.running', 'x.json'), '{"v":2}')
    expect(await findRunning(home, {})).toEqual([])
    // The next one to start removes what nobody will.
    publishInstance(home, running(stranger.url, { profile: 'next' }))
    expect(readdirSync(path.join(home, '.running')).toSorted()).toEqual([
      `moved-${process.pid}.json`,
      `next-${process.pid}.json`,
    ])
  })

  it('has the newest of a stored profile, and all in memory', async () => {
    await using one = await proving({ key: KEY })
    const home = emptyFolder()
    const parent = process.ppid
    const older = { pid: parent, startedAt: '2025-01-01T00:00:00.000Z' }
    publishInstance(home, running(one.url, older))
    publishInstance(home, running(one.url))
    publishInstance(home, running(one.url, { ...older, profile: 'demo', store: 'memory' }))
    publishInstance(home, running(one.url, { profile: 'demo', store: 'memory' }))
    const found = (await findRunning(home, {})).map(({ profile, pid }) => `${profile} ${pid}`)
    expect(found.toSorted()).toEqual(
      [`default ${process.pid}`, `demo ${parent}`, `demo ${process.pid}`].toSorted(),
    )
  })

  it('says where it cannot be written', () => {
    const home = emptyFolder()
    mkdirSync(path.join(home, '.running', `default-${process.pid}.json.draft`), { recursive: true })
    expect(() => publishInstance(home, running('http://127.0.0.1:1'))).toThrow(
      `default-${process.pid}.json cannot be written (E`,
    )
  })
})

it('distinguishes webhook secrets without showing them', () => {
  const record = running('http://127.0.0.1:1')
  const print = secretPrint(record, new Secret('one'))
  expect(print).toMatch(/^[0-9a-f]{16}$/)
  expect(secretPrint(record, new Secret('one'))).toBe(print)
  expect(secretPrint(record, new Secret('two'))).not.toBe(print)
  expect(
    secretPrint({ ...record, key: Buffer.alloc(32, 8).toString('base64url') }, new Secret('one')),
  ).not.toBe(print)
})
