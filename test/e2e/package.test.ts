import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { emptyFolder } from '../helpers/context.js'

const run = promisify(execFile)

/** What somebody who installs the package writes first. */
const PROGRAM = `
import { RelayError, type Settings } from 'webhook-relay'
import { startRelay, type TestRelay } from 'webhook-relay/testing'

const relay: TestRelay = await startRelay()
const settings: Settings = relay.settings
const answer = await fetch(\`\${relay.url}/health\`)
console.log(settings.store, await answer.text(), new RelayError('usage', 'x').exitCode)
await relay[Symbol.asyncDispose]()
`

describe('the packed tarball', () => {
  it('installs into an empty folder, runs, and brings its types', async () => {
    const cwd = emptyFolder()
    // Not through "prepare", which would build again under the other tests.
    const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', cwd]
    const { stdout: tarball } = await run('npm', pack)
    writeFileSync(path.join(cwd, 'package.json'), '{"type":"module"}')
    await run('npm', ['install', '--no-audit', '--no-fund', `./${tarball.trim()}`], { cwd })
    expect((await run('npx', ['relay', '--version'], { cwd })).stdout).toBe(`${packageJson.version}\n`)

    writeFileSync(path.join(cwd, 'program.ts'), PROGRAM)
    const options = [
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--lib',
      'es2023,dom,esnext.disposable',
      '--strict',
    ]
    const tsc = path.resolve('node_modules/typescript/bin/tsc')
    await run(process.execPath, [tsc, ...options, '--skipLibCheck', '--types', '', 'program.ts'], { cwd })
    const { stdout } = await run(process.execPath, ['program.js'], { cwd })
    expect(stdout).toBe('memory {"status":"ok"} 2\n')
  }, 180_000)
})
