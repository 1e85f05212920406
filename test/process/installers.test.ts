import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { emptyFolder, type Env } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { offerKeytar, packInto } from '../kit/packed-project.js'

/** The packages of the installers that do not come with Node. */
const PACKAGES: Readonly<Record<string, string>> = { pnpm: 'pnpm', Yarn: '@yarnpkg/cli-dist', bun: 'bun' }

/** A part of an installer's line that is more than a report of what it did. */
const WARNS = /warn|error|fail|blocked|ignored|deprecat|unsupported|YN(?!0000|0013|0085)\d/i
/** What a package's own script prints while pnpm runs it, and what Yarn says of the lines above it. */
const IS_REPORT = /^\.\.\.\/|Done with warnings/

interface Installer {
  readonly name: string
  readonly inProject: string
  readonly globally: string
  readonly prints: readonly string[]
}

/** The rows of the table of docs/installing.md. */
function installers(): Installer[] {
  const [, page = ''] = readFileSync('docs/installing.md', 'utf8').split('## Every installer')
  const [section = ''] = page.split('\n## ')
  const rows = section.split('\n').flatMap((line) => {
    const [, name = '', inProject, globally, prints] = line.split('|').map((cell) => cell.trim())
    const [command] = spansOf(inProject)
    if (command === undefined) return []
    return [{ name, inProject: command, globally: spansOf(globally)[0] ?? '', prints: spansOf(prints) }]
  })
  return rows
}

function spansOf(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span)
}

/** What shows that relay works, each of its commands started in the same way. */
function use(relay: string): string {
  return `set -e
${relay} --version
${relay} serve --sandbox --port 0 --sandbox-port 0 >serve.txt 2>&1 & service=$!
${relay} wait ping --profile sandbox --timeout 60s >wait.txt 2>&1
${relay} trigger push --profile sandbox >trigger.txt
${relay} log --profile sandbox --json | grep -c event.:.push
kill "$service"
wait "$service"
RELAY_HOME="$PWD/keychain" timeout 60 ${relay} serve --sandbox --port 0 --sandbox-port 0 --store keychain 2>&1 || true`
}

/** What that prints. Where keytar's script has run, it finds no keychain. */
function usedBy(name: string): RegExp {
  const isBuilt = !/no scripts|Yarn/.test(name)
  const reason = isBuilt ? '(?!keytar|the install)[^\n]+' : 'the install script of keytar has not run[^\n]+'
  return new RegExp(`^${packageJson.version}\n1\nerror: The keychain cannot be used: ${reason}\n$`)
}

const PROGRAM = `
import { loadFixture, startRelay } from 'webhook-relay/testing'
const relay = await startRelay()
const { event } = await relay.deliver(await loadFixture('webhook-relay/fixtures/github/push.json'))
console.log(event)
await relay[Symbol.asyncDispose]()
`

describeWith(['registry', 'Linux'], 'the packed tarball, by the commands of docs/installing.md', () => {
  const packed = emptyFolder()
  const children = new Set<ChildProcess>()
  let tarball = ''

  beforeAll(async () => {
    tarball = await packInto(packed)
  })
  // Each leads a group with all that it started.
  afterAll(() => children.forEach((child) => end(child)))

  async function sh(
    command: string,
    cwd: string,
    env: Env,
  ): Promise<{ code: unknown; out: string; err: string }> {
    const child = spawn('sh', ['-c', command], {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.add(child)
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ])
    children.delete(child)
    return { code, out, err }
  }

  /** A folder that has the tarball, and an environment in which installers write nowhere else. */
  async function project(
    name: string,
  ): Promise<{ readonly folder: string; readonly env: Env; readonly bin: string }> {
    const folder = path.join(emptyFolder(), 'a ü 名 b')
    const home = path.join(folder, '.home')
    const bin = path.join(home, 'bin')
    mkdirSync(bin, { recursive: true })
    copyFileSync(path.join(packed, tarball), path.join(folder, tarball))
    await offerKeytar(folder)
    writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(path.join(folder, 'program.js'), PROGRAM)
    const linker = /^Yarn \S+, (\S+)$/.exec(name)?.[1]
    if (linker !== undefined) {
      writeFileSync(path.join(folder, 'yarn.lock'), '')
      writeFileSync(path.join(folder, '.yarnrc.yml'), `nodeLinker: ${linker}\n`)
    }
    const env = {
      PATH: `${bin}:${process.env['PATH']}`,
      PNPM_HOME: home,
      BUN_INSTALL: home,
      npm_config_prefix: home,
      npm_config_prefer_offline: 'true',
      XDG_DATA_HOME: path.join(home, 'data'),
      XDG_CACHE_HOME: path.join(home, 'cache'),
      XDG_CONFIG_HOME: path.join(home, 'config'),
      YARN_GLOBAL_FOLDER: path.join(home, 'yarn'),
      YARN_ENABLE_TELEMETRY: 'false',
      YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
      RELAY_HOME: path.join(home, 'relay'),
      // vitest's, of which relay warns.
      BASE_URL: undefined,
      DBUS_SESSION_BUS_ADDRESS: '/dev/null',
    }
    return { folder, env, bin }
  }

  /** The command as it is typed, where the installer is on the path. */
  function typed(name: string, command: string): string {
    const [, tool = '', version] = /^(\w+) ?([\d.]+)?/.exec(name) ?? []
    const from = PACKAGES[tool]
    return from === undefined ? command : `npx --yes --package ${from}@${version} -- sh -c '${command}'`
  }

  it('has a row for each installer, with its version', () => {
    const names = installers().map(({ name }) => name.replace(/[\d.]+/, '*'))
    expect(names).toEqual([
      'npm',
      'npm, no scripts',
      'pnpm *',
      'Yarn *, node-modules',
      'Yarn *, pnp',
      'bun *',
    ])
  })

  it.concurrent.each(installers())('$name installs it in a project', async ({ name, inProject, prints }) => {
    const { folder, env } = await project(name)
    const installed = await sh(typed(name, inProject), folder, env)
    expect(installed).toMatchObject({ code: 0 })
    expect(undocumented(installed, prints)).toEqual([])
    const isYarn = name.startsWith('Yarn')
    const shown = await sh(typed(name, use(isYarn ? 'yarn relay' : 'node_modules/.bin/relay')), folder, env)
    expect(shown).toMatchObject({ code: 0, out: expect.stringMatching(usedBy(name)) })
    const program = await sh(typed(name, isYarn ? 'yarn node program.js' : 'node program.js'), folder, env)
    expect(program).toMatchObject({ code: 0, out: 'push\n' })
  })

  const rows = installers().filter(({ globally }) => globally !== '')
  it.concurrent.each(rows)('$name installs it for all folders', async ({ name, globally, prints }) => {
    const { folder, env, bin } = await project(name)
    const installed = await sh(typed(name, globally), folder, env)
    expect(installed).toMatchObject({ code: 0 })
    expect(undocumented(installed, prints)).toEqual([])
    const shown = await sh(use('relay'), emptyFolder(), env)
    expect(shown).toMatchObject({ code: 0, out: expect.stringMatching(usedBy(name)) })
    expect(await sh('command -v relay', folder, env)).toMatchObject({ out: `${path.join(bin, 'relay')}\n` })
  })
})

function undocumented({ out, err }: { out: string; err: string }, prints: readonly string[]): string[] {
  return `${out}\n${err}`
    .split('\n')
    .filter((line) => WARNS.test(line) && !IS_REPORT.test(line))
    .filter((line) => !prints.some((part) => line.includes(part)))
}

function end({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
