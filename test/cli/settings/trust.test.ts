import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrust, type Ownership } from '../../../src/old/settings/trust.js'
import { failure } from '../../helpers/failure.js'

const ME = 1000
const STRANGER = 1001
const FILE = '/srv/demo/relay.json'

type Owned = Partial<Ownership>

interface Given {
  readonly uid?: number | undefined
  readonly env?: Record<string, string>
  /** What lies where; all else is the user's own, for the user to write to. */
  readonly owned?: Record<string, Owned>
  /** Where a link leads. */
  readonly links?: Record<string, string>
}

function trustOf({ env = {}, owned = {}, links = {}, ...given }: Given) {
  const { uid } = { uid: ME, ...given }
  return createTrust(env, {
    uid,
    lstat: (file) => ({ uid: uid ?? 0, gid: uid ?? 0, mode: 0o100644, ...owned[file] }),
    realpath: (file) => links[file] ?? file,
  })
}

const distrust = (given: Given) => trustOf(given).distrust(FILE)

const by = (uid: number, mode = 0o644): Owned => ({ uid, gid: uid, mode: 0o100000 | mode })

describe('a file is trusted', () => {
  it.each<[string, Given]>([
    ['of the user', {}],
    ['of root, in a folder of root', { owned: { [FILE]: by(0), [path.dirname(FILE)]: by(0) } }],
    ['that the user’s own group may write to', { owned: { [FILE]: by(ME, 0o664) } }],
    ['that root’s group may write to', { owned: { [FILE]: { ...by(ME, 0o664), gid: 0 } } }],
    ['by a link to one', { links: { [FILE]: '/home/me/relay.json' } }],
    [
      'of the user who called sudo',
      { uid: 0, env: { SUDO_UID: '1000' }, owned: { [FILE]: by(ME), [path.dirname(FILE)]: by(ME) } },
    ],
    ['of anybody on Windows', { uid: undefined, owned: { [FILE]: by(STRANGER, 0o666) } }],
  ])('%s', (_, given) => {
    expect(distrust(given)).toBeUndefined()
  })
})

describe('a file is not trusted', () => {
  const theirs = (file: string, user = STRANGER) => `${file} belongs to user ${user}, not to you or root`

  it.each<[string, Given, string]>([
    ['of another user', { owned: { [FILE]: by(STRANGER) } }, theirs(FILE)],
    ['in a folder of another user', { owned: { '/srv/demo': by(STRANGER) } }, theirs('/srv/demo')],
    [
      'by a link of another user',
      { owned: { [FILE]: by(STRANGER) }, links: { [FILE]: '/home/me/relay.json' } },
      theirs(FILE),
    ],
    [
      'by a link to one of another user',
      { owned: { '/evil/x': by(STRANGER) }, links: { [FILE]: '/evil/x' } },
      theirs('/evil/x'),
    ],
    [
      'by a link into a folder of another user',
      { owned: { '/evil': by(STRANGER) }, links: { [FILE]: '/evil/x' } },
      theirs('/evil'),
    ],
    ['of a user, by root', { uid: 0, owned: { [FILE]: by(ME) } }, theirs(FILE, ME)],
    [
      'of another user than sudo’s, by root',
      { uid: 0, env: { SUDO_UID: '1000' }, owned: { [FILE]: by(STRANGER) } },
      theirs(FILE),
    ],
    [
      'for a SUDO_UID that root did not get from sudo',
      { env: { SUDO_UID: '1001' }, owned: { [FILE]: by(STRANGER) } },
      theirs(FILE),
    ],
  ])('%s', (_, given, why) => {
    expect(distrust(given)).toBe(why)
  })

  it.each<[string, Owned]>([
    ['all may write to', by(ME, 0o646)],
    ['a group of several users may write to', { ...by(ME, 0o664), gid: 100 }],
  ])('that %s', (_, file) => {
    const open = `other users can write to ${FILE}, which belongs to user ${ME}`
    expect(distrust({ owned: { [FILE]: file } })).toBe(open)
    const target = { owned: { '/x/y': file }, links: { [FILE]: '/x/y' } }
    expect(distrust(target)).toBe(open.replace(FILE, '/x/y'))
  })

  it('when its owner cannot be determined', () => {
    const gone = Object.assign(new Error('gone'), { code: 'ENOENT' })
    const realpath = () => {
      throw gone
    }
    const { lstat } = { lstat: () => ({ uid: ME, gid: ME, mode: 0 }) }
    expect(createTrust({}, { uid: ME, lstat, realpath }).distrust(FILE)).toBe(
      'its owner cannot be determined (ENOENT)',
    )
  })

  it('once it is open, when another has taken its place', () => {
    const { distrust, accept } = trustOf({})
    expect(distrust(FILE)).toBeUndefined()
    expect(accept(FILE)({ uid: ME, gid: ME, mode: 0o100600 })).toBeUndefined()
    expect(failure(() => accept(FILE)({ uid: STRANGER, gid: ME, mode: 0o100600 }))).toEqual({
      kind: 'settings',
      message: `${FILE} was replaced while relay read it: ${theirs(FILE)}`,
    })
  })
})
