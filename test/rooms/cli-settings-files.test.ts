import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrust, type System } from '../../src/base/trust.js'
import { shellWith } from '../../src/cli/command.js'
import { secretReader, withDefaults } from '../../src/cli/settings/read.js'
import { emptyFolder } from '../kit/folder.js'
import { load, testShell } from './cli-shell.js'

it('settings may follow a byte order mark', async () => {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'relay.json'), '\uFEFF{"port":1}')
  expect((await load({}, { cwd })).values.port).toBe(1)
})

it('reads the pipe of a source’s secret once, whatever shell of the process asks', async () => {
  const file = path.join(emptyFolder(), 'secret')
  execFileSync('mkfifo', [file])
  const { shell } = testShell({ env: { RELAY_SOURCE_A_SECRET_FILE: file } })
  const writing = writeFile(file, 'canary\r\n')
  const readSecret = await secretReader(shell)
  const secret = await readSecret('RELAY_SOURCE_A_SECRET')
  expect(secret?.text).toBe('canary')
  await writing
  const again = await secretReader(shellWith(shell, { json: true }))
  expect(await again('RELAY_SOURCE_A_SECRET')).toEqual(secret)
})

const NOBODY = 65_534
const REMEDY = 'To use it, check its content, then make it yours with chown and chmod go-w'
const PWNED = withDefaults({ exec: ['id > /tmp/pwned'] })

/** A checkout, and a folder in it to work in. */
function checkout() {
  const root = emptyFolder()
  const cwd = path.join(root, 'a')
  const git = path.join(root, '.git')
  const project = path.join(root, 'relay.json')
  for (const folder of [cwd, git]) mkdirSync(folder)
  writeFileSync(project, '{"exec":"id > /tmp/pwned"}')
  return { root, cwd, git, project, nearer: path.join(cwd, 'relay.json'), dotenv: path.join(cwd, '.env') }
}

async function readIn(cwd: string, env: Record<string, string> = {}) {
  const { values, warnings } = await load({ env }, { cwd })
  return { values, warnings }
}

// Giving a file to another user takes root.
describe.runIf(process.geteuid?.() === 0)('settings files of another user', () => {
  const theirs = (file: string) => `${file} belongs to user ${NOBODY}, not to you or root. ${REMEDY}`

  type Files = ReturnType<typeof checkout>
  const NONE = withDefaults({})
  const untrusted = ({ project, git }: Files, owned: string): string[] => [
    `${project} is ignored, because ${git} is not trusted: ${theirs(owned)}`,
  ]

  it.each<[keyof Files | undefined, typeof NONE, (files: Files) => string[], atTheRoot: typeof NONE]>([
    [undefined, PWNED, () => [], PWNED],
    ['project', NONE, ({ project }) => [`${project} is ignored: ${theirs(project)}`], NONE],
    // The user's own further up counts instead.
    ['nearer', PWNED, ({ nearer }) => [`${nearer} is ignored: ${theirs(nearer)}`], PWNED],
    // There is no checkout, which the folder itself does not need.
    ['git', NONE, (files) => untrusted(files, files.git), PWNED],
    ['root', NONE, (files) => untrusted(files, files.root), NONE],
  ])(
    'are ignored with a warning, and not for the user of sudo: %s',
    async (which, values, warnings, atTheRoot) => {
      const files = checkout()
      const { root, cwd, nearer } = files
      if (which === 'nearer') writeFileSync(nearer, '{"port":1}')
      if (which !== undefined) chownSync(files[which], NOBODY, NOBODY)
      expect(await readIn(cwd)).toEqual({ values, warnings: warnings(files) })
      expect((await readIn(root)).values).toEqual(atTheRoot)
      expect((await readIn(cwd, { SUDO_UID: String(NOBODY) })).warnings).toEqual([])
    },
  )

  it('make no warning where there are no settings', async () => {
    const bare = emptyFolder()
    for (const folder of ['.git', 'a']) mkdirSync(path.join(bare, folder))
    chownSync(bare, NOBODY, NOBODY)
    expect(await readIn(path.join(bare, 'a'))).toEqual({ values: withDefaults({}), warnings: [] })
  })
})

const ME = 1000
const STRANGER = 1001
const FOLDER = '/srv/demo'
const FILE = `${FOLDER}/relay.json`

type Owned = Partial<ReturnType<System['lstat']>>

interface Given {
  readonly uid?: number | undefined
  readonly env?: Record<string, string>
  /** What lies where; all else is the user's own, for the user to write to. */
  readonly owned?: Record<string, Owned>
  /** Where a link leads. */
  readonly links?: Record<string, string>
}

function distrust({ env = {}, owned = {}, links = {}, ...given }: Given): string | undefined {
  const { uid } = { uid: ME, ...given }
  return createTrust(env, {
    uid,
    lstat: (file) => ({ uid: uid ?? 0, gid: uid ?? 0, mode: 0o100644, ...owned[file] }),
    realpath: (file) => links[file] ?? file,
  })(FILE)
}

const by = (uid: number, mode = 0o644, gid = uid): Owned => ({ uid, gid, mode: 0o100000 | mode })
const SUDO = { uid: 0, env: { SUDO_UID: '1000' } }
const [MINE, ALIEN, ROOT] = [by(ME), by(STRANGER), by(0)]
const [TO_MINE, TO_EVIL] = [{ [FILE]: '/home/me/relay.json' }, { [FILE]: '/evil/x' }]
const [ALL, GROUP] = [by(ME, 0o646), by(ME, 0o664, 100)]

const of = (file: string, user = STRANGER) => `${file} belongs to user ${user}, not to you or root`
const open = (file: string) => `other users can write to ${file}, which belongs to user ${ME}`

it.each<[string, Given, why: string | undefined]>([
  ['of the user', {}, undefined],
  ['of root, in a folder of root', { owned: { [FILE]: ROOT, [FOLDER]: ROOT } }, undefined],
  ['that the user’s own group may write to', { owned: { [FILE]: by(ME, 0o664) } }, undefined],
  ['that root’s group may write to', { owned: { [FILE]: by(ME, 0o664, 0) } }, undefined],
  ['by a link to one of the user', { links: TO_MINE }, undefined],
  ['of the user who called sudo', { ...SUDO, owned: { [FILE]: MINE, [FOLDER]: MINE } }, undefined],
  ['of anybody on Windows', { uid: undefined, owned: { [FILE]: by(STRANGER, 0o666) } }, undefined],
  ['of another user', { owned: { [FILE]: ALIEN } }, of(FILE)],
  ['in a folder of another user', { owned: { [FOLDER]: ALIEN } }, of(FOLDER)],
  ['by a link of another user', { owned: { [FILE]: ALIEN }, links: TO_MINE }, of(FILE)],
  ['by a link to one of another user', { owned: { '/evil/x': ALIEN }, links: TO_EVIL }, of('/evil/x')],
  ['by a link into a folder of another user', { owned: { '/evil': ALIEN }, links: TO_EVIL }, of('/evil')],
  ['of a user, by root', { uid: 0, owned: { [FILE]: MINE } }, of(FILE, ME)],
  ['of another user than sudo’s, by root', { ...SUDO, owned: { [FILE]: ALIEN } }, of(FILE)],
  [
    'for a SUDO_UID that root did not get from sudo',
    { env: { SUDO_UID: '1001' }, owned: { [FILE]: ALIEN } },
    of(FILE),
  ],
  ['that all may write to', { owned: { [FILE]: ALL } }, open(FILE)],
  ['by a link to one that all may write to', { owned: { '/evil/x': ALL }, links: TO_EVIL }, open('/evil/x')],
  ['that a group of several users may write to', { owned: { [FILE]: GROUP } }, open(FILE)],
  ['by a link to such a one', { owned: { '/evil/x': GROUP }, links: TO_EVIL }, open('/evil/x')],
])('whether a file is trusted: one %s', (_, given, why) => {
  expect(distrust(given)).toBe(why)
})

it('a file is not trusted when its owner cannot be determined', () => {
  const realpath = () => {
    throw Object.assign(new Error('gone'), { code: 'ENOENT' })
  }
  const trust = createTrust({}, { uid: ME, lstat: () => ({ uid: ME, gid: ME, mode: 0 }), realpath })
  expect(trust(FILE)).toBe('its owner cannot be determined (ENOENT)')
})
