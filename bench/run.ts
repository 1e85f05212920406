// npm run bench [-- <name> …] [--full | --short] [--rounds <n>]: see bench/README.md.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem, type } from 'node:os'
import { parseArgs } from 'node:util'
import { postgresProgram } from '../test/kit/postgres-server.js'
import { agent } from './agent.js'
import { bodies } from './bodies.js'
import { replay, startUp } from './commands.js'
import { forward } from './forward.js'
import { ingest } from './ingest.js'
import { inspectPage } from './inspect-page.js'
import { journal } from './journal.js'
import { kit } from './kit.js'
import { redact } from './redact.js'
import {
  type Benchmark,
  EARLIER,
  isMeasured,
  notMeasured,
  type Options,
  type Row,
  Scope,
  table,
} from './rig.js'
import { trouble } from './trouble.js'
import { servers } from './servers.js'
import { tunnel } from './tunnel.js'

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  ingest,
  forward,
  trouble,
  tunnel,
  servers,
  'start-up': startUp,
  replay,
  journal,
  'inspect-page': inspectPage,
  bodies,
  redact,
  agent,
  kit,
}

await main()

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { full: { type: 'boolean' }, short: { type: 'boolean' }, rounds: { type: 'string' } },
  })
  const unknown = positionals.filter((name) => !Object.hasOwn(BENCHMARKS, name))
  if (unknown.length > 0)
    throw new Error(`no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}`)
  const { full = false, short = false, rounds } = values
  const options: Options = {
    size: short ? 'short' : full ? 'full' : 'usual',
    rounds: (usual) => ({ count: Number(rounds ?? (short ? 1 : usual)), warmUp: !short }),
  }
  const begun = performance.now()
  const sections: string[] = []
  const unmeasured: string[] = []
  for (const [name, benchmark] of Object.entries(BENCHMARKS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    const rows = await measured(benchmark, options)
    if (!isMeasured(rows)) unmeasured.push(name)
    const section = `## ${name}\n\n${benchmark.about.trim()}\n\n${table(rows, benchmark.head)}`
    sections.push(section)
    process.stdout.write(`${section}\n\n`)
  }
  process.stdout.write(`${((performance.now() - begun) / 60_000).toFixed(1)} minutes\n`)
  // A part of a run, or a short one, would mix figures of different days or worth.
  if (positionals.length === 0 && rounds === undefined && !short)
    writeFileSync('bench/RESULTS.md', resultsText(sections, full))
  if (unmeasured.length > 0) throw new Error(`not all was measured of ${unmeasured.join(', ')}`)
}

/** One that fails costs no other's figures. */
async function measured(benchmark: Benchmark, options: Options): Promise<readonly Row[]> {
  await using scope = new Scope()
  try {
    return await benchmark.run(options, scope)
  } catch (error) {
    return [notMeasured('all of it', String(error).split('\n', 1).join(''))]
  }
}

function resultsText(sections: readonly string[], full: boolean): string {
  const facts = Object.entries(machine()).map(([name, value]) => `- ${name}: ${value}`)
  const command = `npm run bench${full ? ' -- --full' : ''}`
  const head = `Written by \`${command}\`. [README.md](README.md) says what the columns are.`
  return ['# Measured speed', head, facts.join('\n'), ...sections, ''].join('\n\n')
}

/** What the figures depend on, by its name. */
function machine(): Readonly<Record<string, string>> {
  const [, system = 'unknown'] =
    /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  // On one in memory a flush costs nothing.
  const fileSystem = execFileSync('df', ['--output=fstype', tmpdir()], { encoding: 'utf8' })
  return {
    Date: new Date().toISOString().slice(0, 10),
    Relay: `commit ${commit('.')}`,
    Earlier: EARLIER === undefined ? 'RELAY_EARLIER is not set' : `commit ${commit(EARLIER)}`,
    Processor: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    Memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    System: `${system}, ${type()} ${release()}`,
    'Data on': fileSystem.trim().split('\n').at(-1) ?? 'unknown',
    'Node.js': process.version,
    PostgreSQL: version(postgresProgram('postgres') ?? 'postgres'),
    Chromium: version('chromium'),
  }
}

function commit(folder: string): string {
  const { stdout } = spawnSync('git', ['-C', folder, 'describe', '--always', '--dirty'], { encoding: 'utf8' })
  return stdout.trim() || 'unknown'
}

function version(program: string): string {
  const { stdout, error } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return error ? 'not installed' : (/\d[\d.]+/.exec(stdout)?.[0] ?? 'unknown')
}
