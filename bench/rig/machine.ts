import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem, type } from 'node:os'

const PACKAGES = ['@octokit/webhooks', '@photostructure/sqlite', 'autocannon', 'undici']
const PROGRAMS = [
  ['wrk', '-v'],
  ['curl', '--version'],
  ['openssl', 'version'],
] as const

/** What the figures depend on, by its name. */
export function machine(): Record<string, string> {
  const [processor] = cpus()
  return {
    Processor: `${cpus().length} × ${processor?.model ?? 'unknown'}`,
    Memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    System: `${distribution()}, ${type()} ${release()}`,
    'Data on': fileSystem(),
    'Node.js': process.version,
    Others: [...packages(), ...programs()].join(', '),
  }
}

function distribution(): string {
  const [, name = 'unknown'] = /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  return name
}

/** On one in memory a flush costs nothing. */
function fileSystem(): string {
  const told = execFileSync('df', ['--output=fstype', tmpdir()], { encoding: 'utf8' })
  return told.trim().split('\n').at(-1) ?? 'unknown'
}

function packages(): string[] {
  const lock: { packages: Record<string, { version: string }> } = JSON.parse(
    readFileSync('package-lock.json', 'utf8'),
  )
  return PACKAGES.map((name) => `${name} ${lock.packages[`node_modules/${name}`]?.version}`)
}

function programs(): string[] {
  return PROGRAMS.map(([name, flag]) => {
    const { stdout, error } = spawnSync(name, [flag], { encoding: 'utf8' })
    const [version] = error ? ['not installed'] : (/\d[\w.+-]*/.exec(stdout) ?? ['unknown'])
    return `${name} ${version}`
  })
}
