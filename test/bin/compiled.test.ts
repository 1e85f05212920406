import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { Module } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { relay } from '../helpers/program.js'

const run = promisify(execFile)
const RUNNER = path.resolve('test/bin/programs/compiled.ts')

/** Node keeps it itself from 22.8 on, in files of its own making. */
const own = !('enableCompileCache' in Module)

interface Home {
  readonly env: Readonly<Record<string, string>>
  readonly folder: string
}

function newHome(): Home {
  const cache = emptyFolder()
  return { env: { XDG_CACHE_HOME: cache }, folder: path.join(cache, 'relay', 'compiled') }
}

/** The one file in which what was compiled of `name` is kept. */
function fileOf({ folder }: Home, name: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith(`-${name}`))
  expect(files).toHaveLength(1)
  return path.join(folder, files[0] ?? '')
}

const inode = (file: string): number => statSync(file).ino

describe.runIf(own)('what was compiled', () => {
  it('is kept by the first start, and left as it is by the next', async () => {
    const home = newHome()
    const first = await relay(['--help'], home.env)
    const file = fileOf(home, 'main.js')
    const written = inode(file)
    expect(await relay(['--help'], home.env)).toEqual(first)
    expect(inode(file)).toBe(written)
  })

  it('is what runs at the next start', async () => {
    const home = newHome()
    const program = path.join(emptyFolder(), 'program.cjs')
    await runWith(home, program, "console.log('one')")
    // Of the same length, which is all that V8 looks at.
    const one = readFileSync(fileOf(home, 'program.cjs'))
    const other = newHome()
    await runWith(other, program, "console.log('two')")
    writeFileSync(fileOf(other, 'program.cjs'), one)
    expect(await runWith(other, program, "console.log('two')")).toBe('one\n')
  })

  it('is made anew when the source changes, also where its length does not', async () => {
    const home = newHome()
    const program = path.join(emptyFolder(), 'program.cjs')
    expect(await runWith(home, program, "console.log('one')")).toBe('one\n')
    expect(await runWith(home, program, "console.log('two')")).toBe('two\n')
  })

  it('is not kept of a file that was changed since the program began, which may have been read before', async () => {
    const home = newHome()
    const folder = emptyFolder()
    const other = path.join(folder, 'other.cjs')
    const source = `require('node:fs').writeFileSync(${JSON.stringify(other)}, ''); require('./other.cjs')`
    await runWith(home, path.join(folder, 'program.cjs'), source)
    expect(readdirSync(home.folder).map((name) => name.split('-').at(-1))).toEqual(['program.cjs'])
  })

  it('is of one file: the same at another place is told of by its own name', async () => {
    const home = newHome()
    for (const folder of [emptyFolder(), emptyFolder()]) {
      const program = path.join(folder, 'program.cjs')
      expect(await runWith(home, program, 'console.log(new Error().stack)')).toContain(program)
    }
  })

  it('is made anew when it is damaged', async () => {
    const home = newHome()
    const first = await relay(['--help'], home.env)
    const file = fileOf(home, 'main.js')
    const damaged = readFileSync(file)
    damaged.fill(0, damaged.length / 2)
    writeFileSync(file, damaged)
    expect(await relay(['--help'], home.env)).toEqual(first)
    expect(readFileSync(file).equals(damaged)).toBe(false)
  })

  it('is made anew when V8 refuses it, as under other flags', async () => {
    const home = newHome()
    const program = path.join(emptyFolder(), 'program.cjs')
    await runWith(home, program, '1')
    const written = inode(fileOf(home, 'program.cjs'))
    await runWith(home, program, '1', '--no-opt')
    expect(inode(fileOf(home, 'program.cjs'))).not.toBe(written)
  })

  it('is for its owner alone', async () => {
    const home = newHome()
    await relay(['--help'], home.env)
    expect(statSync(home.folder).mode & 0o777).toBe(0o700)
    expect(statSync(fileOf(home, 'main.js')).mode & 0o777).toBe(0o600)
  })

  it('is whole when several start at once', async () => {
    const home = newHome()
    const ended = await Promise.all(Array.from({ length: 6 }, () => relay(['--help'], home.env)))
    expect(new Set(ended.map(({ code, out, err }) => `${code} ${out} ${err}`)).size).toBe(1)
    const written = inode(fileOf(home, 'main.js'))
    await relay(['--help'], home.env)
    expect(inode(fileOf(home, 'main.js'))).toBe(written)
  })

  it('is not kept for those who ask for the version alone, nor for those who want none', async () => {
    const home = newHome()
    await relay(['--version'], home.env)
    await relay(['--help'], { ...home.env, NODE_DISABLE_COMPILE_CACHE: '1' })
    expect(readdirSync(home.env['XDG_CACHE_HOME'] ?? '')).toEqual([])
  })

  it('is not kept of what imports, since it could not any more', async () => {
    const home = newHome()
    const program = path.join(emptyFolder(), 'program.cjs')
    const source = "import('node:path').then(({ sep }) => console.log(sep))"
    for (const _ of ['first', 'second']) expect(await runWith(home, program, source)).toBe(`${path.sep}\n`)
  })

  it('is kept in no folder to which others may write', async () => {
    const { env, folder } = newHome()
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o777)
    const { code } = await relay(['--help'], env)
    expect(code).toBe(0)
    expect(readdirSync(folder)).toEqual([])
  })

  it('is nothing to files from elsewhere, which Node loads as ever', async () => {
    const home = newHome()
    const other = path.join(emptyFolder(), 'other.cjs')
    writeFileSync(other, 'module.exports = module.constructor.name')
    const source = `console.log(require(${JSON.stringify(other)}), require('node:path').sep)`
    expect(await runWith(home, path.join(emptyFolder(), 'program.cjs'), source)).toBe(`Module ${path.sep}\n`)
    expect(readdirSync(home.folder).map((name) => name.split('-').at(-1))).toEqual(['program.cjs'])
  })

  it('is of files that are loaded once each, as they are to each other', async () => {
    const folder = emptyFolder()
    writeFileSync(
      path.join(folder, 'other.cjs'),
      "console.log('other'); exports.first = require('./program.cjs').first",
    )
    const source =
      "exports.first = 1; console.log(require('./other.cjs') === require('./other.cjs'), require('./other.cjs').first)"
    const home = newHome()
    for (const _ of ['first', 'second'])
      expect(await runWith(home, path.join(folder, 'program.cjs'), source)).toBe('other\ntrue 1\n')
  })

  it('is kept by a service while it runs', async () => {
    const home = newHome()
    const program = path.join(emptyFolder(), 'program.cjs')
    const source = `const { readdirSync } = require('node:fs')
const look = () => { try { console.log(readdirSync(${JSON.stringify(home.folder)}).length) } catch { setTimeout(look, 50) } }
look()`
    expect(Number(await runWith(home, program, source))).toBeGreaterThan(0)
  })
})

describe('without a place to keep what was compiled', () => {
  it('relay says the same, and nothing of it', async () => {
    const usual = await relay(['--help'])
    const file = path.join(emptyFolder(), 'file')
    writeFileSync(file, '')
    expect(await relay(['--help'], { XDG_CACHE_HOME: file })).toEqual(usual)
    expect(await relay(['--help'], { XDG_CACHE_HOME: '/proc' })).toEqual(usual)
  })
})

describe('another version of Node', () => {
  it('that keeps what was compiled is given a folder that is the own', async () => {
    const { env, folder } = newHome()
    expect((await relay(['--help'], { ...env, ...keeping() })).err).toBe(`${folder}\n`)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('that keeps what was compiled is given no folder to which others may write', async () => {
    const { env, folder } = newHome()
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o777)
    expect((await relay(['--help'], { ...env, ...keeping() })).err).toBe('')
  })
})

/** Has Node run this before the program. */
function preload(source: string): { readonly NODE_OPTIONS: string } {
  const file = path.join(emptyFolder(), 'preload.cjs')
  writeFileSync(file, source)
  return { NODE_OPTIONS: `--require=${file}` }
}

/** A Node that tells the folder it is to keep compiled code in. */
const keeping = () =>
  preload(`Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.8.0' } })
require('node:module').enableCompileCache = (folder) => console.error(folder)`)

/** Has the program hold this source, as a file that stays as it is where it does, runs it with what is compiled of it kept, and gives what it prints. */
async function runWith(
  { folder }: Home,
  program: string,
  source: string,
  ...flags: string[]
): Promise<string> {
  if (!existsSync(program) || readFileSync(program, 'utf8') !== source) writeFileSync(program, source)
  const { stdout } = await run(process.execPath, [...flags, '--import', 'tsx', RUNNER, folder, program])
  return stdout
}
