import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'

const STRANGER = 65_534

/** Every folder and file below a folder, and the folder itself as `.`. */
function placesIn(home: string): string[] {
  const found = readdirSync(home, { recursive: true, withFileTypes: true })
  return ['.', ...found.map(({ parentPath, name }) => path.relative(home, path.join(parentPath, name)))]
}

const modeOf = (file: string): string => (lstatSync(file).mode & 0o7777).toString(8)

/** What is in each file, and what each place is: nothing may change but the lock, which a command holds meanwhile. */
function stateOf(folder: string): Record<string, unknown> {
  const states = placesIn(folder)
    .filter((each) => !each.includes('serve.lock'))
    .map((each) => {
      const file = path.join(folder, each)
      const { mode, uid } = lstatSync(file)
      const isFile = lstatSync(file).isFile()
      return [each, { mode, uid, ...(isFile && { sha256: hash('sha256', readFileSync(file)) }) }]
    })
  return Object.fromEntries(states)
}

/** The data folder as a running relay leaves it when it is killed: with all that relay ever writes there. */
async function used(): Promise<{ readonly home: string; readonly written: readonly string[] }> {
  await using here = await place({ signedIn: true })
  const relay = await here.serve('--exec', 'cat')
  await relay.deliver()
  const home = path.join(emptyFolder(), 'home')
  const written = placesIn(here.home)
  for (const each of written) {
    const [from, to] = [path.join(here.home, each), path.join(home, each)]
    if (lstatSync(from).isDirectory()) mkdirSync(to, { mode: 0o700 })
    else copyFileSync(from, to)
    chmodSync(to, lstatSync(from).mode)
  }
  return { home, written }
}

const { home: USED, written: WRITTEN } = await used()

/** A copy of it. */
function copy(): string {
  const home = path.join(emptyFolder(), 'home')
  for (const each of WRITTEN) {
    const [from, to] = [path.join(USED, each), path.join(home, each)]
    if (lstatSync(from).isDirectory()) mkdirSync(to, { mode: 0o700 })
    else copyFileSync(from, to)
    chmodSync(to, lstatSync(from).mode)
  }
  return home
}

const isRecord = (each: string): boolean => each.startsWith('.running/')

/** Commands that would believe what is there, and what each of them reads or writes. */
const COMMANDS: readonly (readonly [argv: readonly string[], uses: RegExp])[] = [
  [['serve', '--port', '0'], /./],
  [['reset', '--yes', '--local'], /./],
  [['profiles'], /^(\.|\.running.*|default|.*\.json)$/],
  ...[
    ['whoami'],
    ['log'],
    ['token'],
    ['trigger', 'push'],
    ['replay', '1'],
    ['export', '1'],
    ['verify', '1'],
  ].map((argv) => [argv, /^(?!.*lock)/] as const),
]

const isDeep = (each: string): boolean => /lock|relay\.db/.test(each)

type Hostility = (place: string) => void
const HOSTILE: Readonly<Record<string, Hostility>> = {
  'all may write to': (file) => chmodSync(file, lstatSync(file).mode | 0o002),
  'another user owns': (file) => chownSync(file, STRANGER, STRANGER),
  'a group of others may write to': (file) => {
    chownSync(file, 0, STRANGER)
    chmodSync(file, lstatSync(file).mode | 0o020)
  },
  'is another user’s link': (file) => {
    const real = path.join(emptyFolder(), 'real')
    renameSync(file, real)
    symlinkSync(real, file)
    lchownSync(file, STRANGER, STRANGER)
  },
  'is a link to what another user owns': (file) => {
    const real = path.join(emptyFolder(), 'real')
    renameSync(file, real)
    symlinkSync(real, file)
    chownSync(real, STRANGER, STRANGER)
  },
  'lies where all may write': (file) => chmodSync(path.dirname(file), 0o777),
}

async function refuses(
  here: Place,
  home: string,
  commands: readonly (readonly string[])[],
  outside = path.dirname(home),
): Promise<void> {
  for (const argv of commands) {
    const before = stateOf(outside)
    const { code, err, out } = await here.runWith({ env: { RELAY_HOME: home } }, ...argv)
    expect({ argv, code, err }).toEqual({
      argv,
      code: 2,
      err: expect.stringMatching(/relay does not use \S+: .*(belongs to user 65534|other users can write)/),
    })
    // It says what to do, in words that work when typed.
    expect(err).toMatch(/(chown -hR \d+|chmod go-w) '[^']+', or set RELAY_HOME to a folder of your own/)
    expect(out).not.toContain('gho_')
    expect({ argv, state: stateOf(outside) }).toEqual({ argv, state: before })
  }
}

it('all that relay writes is for its owner alone', () => {
  expect(WRITTEN).toEqual(
    expect.arrayContaining([
      '.running',
      'default',
      'default/relay.db',
      'default/profile.json',
      'default/serve.lock',
    ]),
  )
  expect(WRITTEN.some(isRecord)).toBe(true)
  for (const each of WRITTEN.slice(1)) {
    const { mode, uid } = lstatSync(path.join(USED, each))
    const isFolder = lstatSync(path.join(USED, each)).isDirectory()
    expect([each, (mode & 0o777).toString(8), uid]).toEqual([
      each,
      isFolder ? '700' : '600',
      process.geteuid?.(),
    ])
  }
})

describeWith('root', 'a place of relay’s that', () => {
  const rows = Object.keys(HOSTILE).flatMap((kind) => WRITTEN.map((each) => [kind, each] as const))

  it.each(rows)('%s is refused: %s', async (kind, each) => {
    await using here = await place({ host: 'none' })
    const home = copy()
    HOSTILE[kind]?.(path.join(home, each))
    const used = kind === 'lies where all may write' ? path.dirname(each) : each
    const commands = COMMANDS.filter(([, uses]) => uses.test(used))
    await refuses(
      here,
      home,
      commands.map(([argv]) => argv),
    )
    if (isDeep(used)) return
    // relay doctor says it as one of its results.
    const { code, out } = await here.runWith({ env: { RELAY_HOME: home } }, 'doctor', '--json')
    expect({ code, out }).toEqual({ code: 1, out: expect.stringContaining('relay does not use') })
  })

  it('but not one of the user of sudo, or of the user’s own links', async () => {
    await using here = await place({ host: 'none' })
    const home = copy()
    const link = path.join(emptyFolder(), 'link')
    symlinkSync(home, link)
    expect(await here.runWith({ env: { RELAY_HOME: link } }, 'log', '--json')).toMatchObject({
      code: 0,
      err: '',
    })
    for (const each of placesIn(home)) chownSync(path.join(home, each), STRANGER, STRANGER)
    const sudo = { RELAY_HOME: home, SUDO_UID: String(STRANGER) }
    expect(await here.runWith({ env: sudo, built: true }, 'log', '--json')).toMatchObject({
      code: 0,
      err: '',
    })
  })

  it('but the data folder may be open to all where nobody can replace what others have, as a new tmpfs is', async () => {
    await using here = await place({ host: 'none' })
    const home = copy()
    chmodSync(home, 0o1777)
    expect(await here.runWith({ env: { RELAY_HOME: home } }, 'log', '--json')).toMatchObject({
      code: 0,
      err: '',
    })
    mkdirSync(path.join(home, 'work'), { mode: 0o700 })
    chownSync(path.join(home, 'work'), STRANGER, STRANGER)
    await refuses(here, home, [['serve', '--port', '0', '--profile', 'work']])
  })

  it('is made in no folder of another user, however deep', async () => {
    await using here = await place({ host: 'none' })
    const folder = emptyFolder()
    chownSync(folder, STRANGER, STRANGER)
    await refuses(here, path.join(folder, 'a', 'home'), [['serve', '--port', '0'], ['profiles']], folder)
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('what others may only read', () => {
  it('is closed to them', async () => {
    await using here = await place({ host: 'none' })
    const home = copy()
    // Those of the killed relay are removed by the next.
    const left = WRITTEN.filter((each) => each !== '.' && !isRecord(each))
    for (const each of left) {
      const file = path.join(home, each)
      chmodSync(file, lstatSync(file).isDirectory() ? 0o755 : 0o644)
    }
    const relay = here.startWith({ env: { RELAY_HOME: home } }, 'serve', '--port', '0', '--json')
    await relay.url()
    await relay.object({ type: 'listening' })
    const open = placesIn(home)
      .slice(1)
      .filter((each) => !/^[67]00$/.test(modeOf(path.join(home, each))))
    expect(open).toEqual([])
  })
})

describe('a draft', () => {
  it('is written under no name that can be guessed, and through no link', async () => {
    await using here = await place({ host: 'none' })
    const home = copy()
    const target = path.join(emptyFolder(), 'target')
    writeFileSync(target, 'untouched')
    const names = WRITTEN.filter((each) => each.endsWith('.json'))
    for (const each of names) symlinkSync(target, path.join(home, `${each}.draft`))
    const relay = here.startWith({ env: { RELAY_HOME: home } }, 'serve', '--port', '0', '--json')
    await relay.object({ type: 'listening' })
    const links = placesIn(home).filter((each) => lstatSync(path.join(home, each)).isSymbolicLink())
    expect(links.toSorted()).toEqual(names.map((each) => `${each}.draft`).toSorted())
    expect(readFileSync(target, 'utf8')).toBe('untouched')
    rmSync(target)
  })
})
