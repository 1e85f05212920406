import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrust, readJsonObject, type System } from '../../src/cli/settings/files.js'
import { withDefaults } from '../../src/cli/settings/read.js'
import { emptyFolder } from '../kit/folder.js'
import { failure, load } from './cli-shell.js'

describe('readJsonObject', () => {
  const file = path.join(emptyFolder(), 'x.json')

  it('reads an object, with or without a byte order mark, and no file as undefined', () => {
    expect(readJsonObject(file)).toBeUndefined()
    writeFileSync(file, '\uFEFF{"a":1}')
    expect(readJsonObject(file)).toEqual({ a: 1 })
  })

  it.each([
    ['{\n  "a": 1\n  "b": 2\n}', `${file}, line 3: not JSON`],
    ['[]', `${file}: must be one JSON object, { … }`],
    ['null', `${file}: must be one JSON object, { … }`],
  ])('refuses %j', (text, message) => {
    writeFileSync(file, text)
    expect(failure(() => readJsonObject(file))).toEqual({ kind: 'settings', message })
  })
})

const NOBODY = 65_534
const REMEDY = 'To use it, check its content, then make it yours with chown and chmod go-w'

/** A checkout, and a folder in it to work in. */
function checkout() {
  const root = emptyFolder()
  const cwd = path.join(root, 'a')
  const files = { git: path.join(root, '.git'), project: path.join(root, 'relay.json') }
  mkdirSync(cwd)
  mkdirSync(files.git)
  writeFileSync(files.project, '{"exec":"id > /tmp/pwned"}')
  return { root, cwd, dotenv: path.join(cwd, '.env'), ...files }
}

function readIn(cwd: string, env: Record<string, string> = {}) {
  const { values, warnings } = load({ env }, { cwd })
  return { values, warnings }
}

const theirs = (file: string) => `${file} belongs to user ${NOBODY}, not to you or root`

describe('settings files that others can write to', () => {
  it('are ignored with a warning', () => {
    const { cwd, project, dotenv } = checkout()
    writeFileSync(dotenv, 'RELAY_EXEC=id')
    for (const file of [project, dotenv]) chmodSync(file, 0o666)
    const open = (file: string) =>
      `${file} is ignored: other users can write to ${file}, which belongs to user ${process.geteuid?.()}. ${REMEDY}`
    expect(readIn(cwd)).toEqual({ values: withDefaults({}), warnings: [open(dotenv), open(project)] })
  })
})

// Giving a file to another user takes root.
describe.runIf(process.geteuid?.() === 0)('settings files of another user', () => {
  it('count as the user’s own do, once they are', () => {
    expect(readIn(checkout().cwd)).toEqual({
      values: withDefaults({ exec: ['id > /tmp/pwned'] }),
      warnings: [],
    })
  })

  it('are ignored with a warning', () => {
    const { cwd, project } = checkout()
    chownSync(project, NOBODY, NOBODY)
    const warnings = [`${project} is ignored: ${theirs(project)}. ${REMEDY}`]
    expect(readIn(cwd)).toEqual({ values: withDefaults({}), warnings })
    expect(readIn(cwd, { SUDO_UID: String(NOBODY) }).warnings).toEqual([])
  })

  it('are passed over for the user’s own further up', () => {
    const { cwd } = checkout()
    const nearer = path.join(cwd, 'relay.json')
    writeFileSync(nearer, '{"port":1}')
    chownSync(nearer, NOBODY, NOBODY)
    expect(readIn(cwd)).toEqual({
      values: withDefaults({ exec: ['id > /tmp/pwned'] }),
      warnings: [`${nearer} is ignored: ${theirs(nearer)}. ${REMEDY}`],
    })
  })

  it('make no checkout: a .git', () => {
    const { cwd, git, project } = checkout()
    chownSync(git, NOBODY, NOBODY)
    expect(readIn(cwd)).toEqual({
      values: withDefaults({}),
      warnings: [`${project} is ignored, because ${git} is not trusted: ${theirs(git)}. ${REMEDY}`],
    })
    // The folder itself needs no checkout.
    expect(readIn(path.dirname(project)).values.exec).toEqual(['id > /tmp/pwned'])
  })

  it('make no checkout: a .git in a folder of another user, also of one that has no settings', () => {
    const { root, cwd, git, project } = checkout()
    chownSync(root, NOBODY, NOBODY)
    const warnings = [`${project} is ignored, because ${git} is not trusted: ${theirs(root)}. ${REMEDY}`]
    expect(readIn(cwd)).toEqual({ values: withDefaults({}), warnings })
    const bare = emptyFolder()
    mkdirSync(path.join(bare, '.git'))
    mkdirSync(path.join(bare, 'a'))
    chownSync(bare, NOBODY, NOBODY)
    expect(readIn(path.join(bare, 'a'))).toEqual({ values: withDefaults({}), warnings: [] })
  })
})

const ME = 1000
const STRANGER = 1001
const FILE = '/srv/demo/relay.json'

type Owned = Partial<ReturnType<System['lstat']>>

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

const distrust = (given: Given) => trustOf(given)(FILE)

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
    expect(createTrust({}, { uid: ME, lstat, realpath })(FILE)).toBe(
      'its owner cannot be determined (ENOENT)',
    )
  })
})
