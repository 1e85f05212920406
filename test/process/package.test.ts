import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { codeBlocks } from '../kit/code-blocks.js'
import { emptyFolder } from '../kit/folder.js'
import { type PackedProject, packedProject } from '../kit/packed-project.js'

const TSX = import.meta.resolve('tsx')

/** What somebody who installs the package writes first. It ends by itself. */
const PROGRAM = `
import { RelayError, type Settings } from 'webhook-relay'
import { type Fixture, loadFixture, startRelay, startSandbox, type TestRelay } from 'webhook-relay/testing'

const relay: TestRelay = await startRelay()
const settings: Settings = relay.settings
const answer = await fetch(\`\${relay.url}/health\`)
console.log(settings.store, await answer.text(), new RelayError('usage', 'x').exitCode)
const push: Fixture = await loadFixture('webhook-relay/fixtures/github/push.json')
const { event, attempts } = await relay.deliver(push)
const sandbox = await startSandbox()
console.log(event, attempts.length, (await relay.signIn()).slice(0, 4), (await sandbox.token()).slice(0, 4))
await sandbox[Symbol.asyncDispose]()
await relay[Symbol.asyncDispose]()
`

/** Prints the globals that are not what they were, but for those that zod keeps its own state in. */
const GLOBALS = `
const globals = () => new Map(Reflect.ownKeys(globalThis).map((key) => [key, globalThis[key]]))
globals() // Some are made when they are first looked at.
const before = globals()
const { startRelay } = await import('webhook-relay/testing')
const relay = await startRelay()
await relay.signIn()
await relay[Symbol.asyncDispose]()
const changed = [...globals()].filter(([key, value]) => !before.has(key) || !Object.is(before.get(key), value))
console.log(changed.map(([key]) => String(key)).filter((key) => !key.startsWith('__zod_')))
`

/** Prints whether the package undici now serves Node's own fetch. */
const DISPATCHER = `
import 'webhook-relay/testing'
import { Agent, getGlobalDispatcher } from 'undici'
console.log(getGlobalDispatcher() instanceof Agent)
`

/** The programs of the documentation, by their names. */
function examples(): Map<string, string> {
  return new Map(['README.md', 'docs/testing.md', 'docs/library.md'].flatMap((page) => [...codeBlocks(page)]))
}

/** The names in lists such as `type Log, serve`. */
function namesIn(lists: Iterable<RegExpMatchArray>): string[] {
  return [...lists].flatMap(([, list = '']) => list.match(/(?!type\b)\b\w+/g) ?? [])
}

const OPTIONS = '--module nodenext --target es2023 --lib es2023,esnext.disposable --strict'.split(' ')

describe.concurrent('the packed tarball', () => {
  let project: PackedProject
  const compile = (...args: string[]): Promise<string> =>
    project.run(process.execPath, project.tool('typescript/bin/tsc'), ...OPTIONS, '--skipLibCheck', ...args)
  const write = (files: ReadonlyMap<string, string>): void => {
    for (const [name, text] of files) writeFileSync(path.join(project.folder, name), text)
  }

  beforeAll(async () => {
    project = await packedProject()
  })

  it('installs into an empty folder, runs, and brings its types', async () => {
    expect(await project.run('npx', 'relay', '--version')).toBe(`${packageJson.version}\n`)
    write(new Map([['program.ts', PROGRAM]]))
    await compile('--lib', 'es2023,dom,esnext.disposable', '--types', '', 'program.ts')
    const out = await project.run(process.execPath, 'program.js')
    expect(out).toBe('memory {"status":"ok"} 2\npush 0 gho_ gho_\n')
  })

  it.each([
    ['bin', 'hono'],
    ['inspect', 'preact'],
  ])('brings the licences of what is bundled in %s', (part, name) => {
    const file = path.join(project.folder, 'node_modules/webhook-relay/dist', part, 'LICENSES.txt')
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^${name} \\d[^]*MIT`, 'm'))
  })

  it('is packed again after a pack that was interrupted', () => {
    const cwd = emptyFolder()
    const manifest = path.join(cwd, 'package.json')
    writeFileSync(manifest, '{"scripts":{}}')
    for (const action of ['pack', 'pack', 'restore'])
      execFileSync(process.execPath, ['--import', TSX, path.resolve('scripts/manifest.ts'), action], { cwd })
    expect(readFileSync(manifest, 'utf8')).toBe('{"scripts":{}}')
  })

  it('has no script that npm runs or warns of', async () => {
    const file = path.join(project.folder, 'node_modules/webhook-relay/package.json')
    expect(JSON.parse(readFileSync(file, 'utf8'))).not.toHaveProperty('scripts')
    expect(project.warnings.split('\n').filter((line) => line.includes('webhook-relay'))).toEqual([])
  })

  it('leaves globals alone', async () => {
    write(new Map(Object.entries({ 'globals.mjs': GLOBALS, 'dispatcher.mjs': DISPATCHER })))
    expect(await project.run(process.execPath, 'globals.mjs')).toBe('[]\n')
    expect(await project.run(process.execPath, 'dispatcher.mjs')).toBe('false\n')
  })

  it.each([
    ['webhook-relay', 'index.d.ts', 'docs/library.md'],
    ['webhook-relay/testing', 'testing/index.d.ts', 'docs/testing.md'],
  ])('has an example of every export of %s, and a page that lists it', (from, types, page) => {
    const file = path.join(project.folder, 'node_modules/webhook-relay/dist/src', types)
    const exported = namesIn(readFileSync(file, 'utf8').matchAll(/^export (?:type )?\{([^}]+)\}/gm))
    const imports = [...examples().values()].flatMap((text) => [
      ...text.matchAll(new RegExp(`^import (?:type )?\\{([^}]+)\\} from '${from}'`, 'gm')),
    ])
    const shown = new Set(namesIn(imports))
    expect(exported.length).toBeGreaterThan(15)
    expect(exported.filter((name) => !shown.has(name))).toEqual([])
    const rows =
      readFileSync(page, 'utf8')
        .match(/^\|.*$/gm)
        ?.join('\n') ?? ''
    expect(exported.filter((name) => !new RegExp(`\`${name}\\b`).test(rows))).toEqual([])
  })

  it('does what the documentation shows', async () => {
    const files = examples()
    const names = [...files.keys()]
    expect(names.join(' ')).toBe(
      'bot.ts bot.test.ts verify.ts app.ts app.test.ts payments.ts payments.test.ts discord.test.ts merge-bot.ts merge-bot.test.ts retries.test.ts sandbox.test.ts helpers.ts deploy.sh webhooks.sh embed.ts embed.test.ts mounted.ts',
    )
    write(files)
    await compile('--noEmit', '--types', 'node', ...names.filter((name) => name.endsWith('.ts')))
    // It shares the machine with all other tests.
    const run = ['run', '--reporter=json', '--testTimeout=120000']
    const out = await project.run(process.execPath, project.tool('vitest/vitest.mjs'), ...run)
    const numTotalTestSuites = names.filter((name) => name.endsWith('.test.ts')).length
    expect(JSON.parse(out)).toMatchObject({ success: true, numTotalTestSuites, numPendingTests: 0 })
    await project.run('sh', 'webhooks.sh')
  })
})

it('installs in a clone without a warning', () => {
  const npm = spawnSync('npm', ['ci', '--dry-run', '--ignore-scripts', '--offline'], { encoding: 'utf8' })
  expect(npm).toMatchObject({ status: 0, stderr: '' })
})
