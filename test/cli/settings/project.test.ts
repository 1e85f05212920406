import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { withDefaults } from '../../../src/old/settings/complete.js'
import { readOptions } from '../../../src/old/settings/read.js'
import { emptyFolder, testContext } from '../../helpers/context.js'

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

function read(cwd: string, env: Record<string, string> = {}) {
  const warnings: string[] = []
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) }
  const { options } = readOptions(testContext({ cwd, env }).context, {}, log)
  return { options, warnings }
}

const theirs = (file: string) => `${file} belongs to user ${NOBODY}, not to you or root`

describe('settings files that others can write to', () => {
  it('are ignored with a warning', () => {
    const { cwd, project, dotenv } = checkout()
    writeFileSync(dotenv, 'RELAY_EXEC=id')
    for (const file of [project, dotenv]) chmodSync(file, 0o666)
    const open = (file: string) =>
      `${file} is ignored: other users can write to ${file}, which belongs to user ${process.geteuid?.()}. ${REMEDY}`
    expect(read(cwd)).toEqual({ options: withDefaults({}), warnings: [open(dotenv), open(project)] })
  })
})

// Giving a file to another user takes root.
describe.runIf(process.geteuid?.() === 0)('settings files of another user', () => {
  it('count as the user’s own do, once they are', () => {
    expect(read(checkout().cwd)).toEqual({
      options: withDefaults({ exec: ['id > /tmp/pwned'] }),
      warnings: [],
    })
  })

  it('are ignored with a warning: relay.json', () => {
    const { cwd, project } = checkout()
    chownSync(project, NOBODY, NOBODY)
    const warnings = [`${project} is ignored: ${theirs(project)}. ${REMEDY}`]
    expect(read(cwd)).toEqual({ options: withDefaults({}), warnings })
    expect(read(cwd, { SUDO_UID: String(NOBODY) }).warnings).toEqual([])
  })

  it('are ignored with a warning: .env', () => {
    const { cwd, project, dotenv } = checkout()
    writeFileSync(dotenv, 'RELAY_EXEC=id')
    writeFileSync(project, '{"port":1}')
    chownSync(dotenv, NOBODY, NOBODY)
    const warnings = [`${dotenv} is ignored: ${theirs(dotenv)}. ${REMEDY}`]
    expect(read(cwd)).toEqual({ options: withDefaults({ port: 1 }), warnings })
  })

  it('are ignored with a warning: a link to one', () => {
    const { root, cwd, dotenv } = checkout()
    const target = path.join(root, 'theirs')
    writeFileSync(target, 'RELAY_EXEC=id')
    chownSync(target, NOBODY, NOBODY)
    symlinkSync(target, dotenv)
    expect(read(cwd).warnings).toEqual([`${dotenv} is ignored: ${theirs(target)}. ${REMEDY}`])
  })

  it('are passed over for the user’s own further up', () => {
    const { cwd } = checkout()
    const nearer = path.join(cwd, 'relay.json')
    writeFileSync(nearer, '{"port":1}')
    chownSync(nearer, NOBODY, NOBODY)
    expect(read(cwd)).toEqual({
      options: withDefaults({ exec: ['id > /tmp/pwned'] }),
      warnings: [`${nearer} is ignored: ${theirs(nearer)}. ${REMEDY}`],
    })
  })

  it('make no checkout: a .git', () => {
    const { cwd, git, project } = checkout()
    chownSync(git, NOBODY, NOBODY)
    expect(read(cwd)).toEqual({
      options: withDefaults({}),
      warnings: [`${project} is ignored, because ${git} is not trusted: ${theirs(git)}. ${REMEDY}`],
    })
    // The folder itself needs no checkout.
    expect(read(path.dirname(project)).options.exec).toEqual(['id > /tmp/pwned'])
  })

  it('make no checkout: a .git in a folder of another user, also of one that has no settings', () => {
    const { root, cwd, git, project } = checkout()
    chownSync(root, NOBODY, NOBODY)
    const warnings = [`${project} is ignored, because ${git} is not trusted: ${theirs(root)}. ${REMEDY}`]
    expect(read(cwd)).toEqual({ options: withDefaults({}), warnings })
    const bare = emptyFolder()
    mkdirSync(path.join(bare, '.git'))
    mkdirSync(path.join(bare, 'a'))
    chownSync(bare, NOBODY, NOBODY)
    expect(read(path.join(bare, 'a'))).toEqual({ options: withDefaults({}), warnings: [] })
  })
})
