import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type PackedProject, packedProject } from '../kit/packed-project.js'
import { installed } from '../kit/tools.js'

/** The tools of other projects. This project's own TypeScript is 7, and its vitest the newest that runs on Node 20. */
const TOOLS = {
  '@types/jest': '30.0.0',
  '@types/mocha': '10.0.10',
  jest: '30.5.2',
  mocha: '11.8.0',
  'typescript-5.9': 'npm:typescript@5.9.3',
  'typescript-6': 'npm:typescript@6.0.3',
}

/** How a test of each runner gets what all of them have. */
const RUNNERS = {
  jest: "import { afterEach, test } from '@jest/globals'",
  mocha: 'const test = it',
  node: "import { afterEach, test } from 'node:test'",
  vitest: "import { afterEach, test } from 'vitest'",
} as const

/** What a bot's author writes: all of the kit, and of the library. */
const BODY = `
import assert from 'node:assert/strict'
import { createRelay, DEFAULTS, type Relay, RelayError, Secret, serve, type Settings } from 'webhook-relay'
import { type Fixture, fixtureOf, loadFixture, signedRequest, startRelay, startSandbox, type TestRelay } from 'webhook-relay/testing'

let relay: TestRelay | undefined
afterEach(() => relay?.stop())

test('delivers to a command', async () => {
  relay = await startRelay({ exec: ['cat'] })
  const push: Fixture = await loadFixture('webhook-relay/fixtures/github/push.json')
  const { event, attempts, payload } = await relay.deliver(push)
  assert.deepEqual([event, attempts.map(({ status }) => status)], ['push', [0]])
  assert.equal(typeof payload, 'object')
  assert.match(await relay.signIn(), /^gho_/)
  await assert.rejects(relay.signIn('a b'), (error: unknown) => error instanceof RelayError && error.kind === 'usage')
  await assert.rejects(relay.deliveries({ event: 'fork' }, { timeout: 20 }), { kind: 'timed_out' })
})

test('says why the system refused', async () => {
  await assert.rejects(loadFixture('missing.json'), { message: 'missing.json: no such file or folder' })
  const sandbox = await startSandbox()
  const port = Number(new URL(sandbox.url).port)
  await assert.rejects(startSandbox({ port }), { message: 'Port ' + port + ' is in use. Choose another with the option port, or 0 for any free port.' })
  await sandbox.stop()
})

test('receives in a program', async () => {
  relay = await startRelay()
  const settings: Settings = {
    ...DEFAULTS,
    providerUrl: 'https://github.com',
    webhookSecrets: { current: new Secret(relay.secret) },
    folder: '',
    store: 'memory',
    port: 0,
    allowedHosts: [],
    routes: [],
  }
  const serving = await serve(settings)
  assert.equal((await fetch(signedRequest(fixtureOf('push'), { url: serving.url + '/webhook' }))).status, 200)
  await serving[Symbol.asyncDispose]()
  await using _sandbox = await startSandbox()
  const apart: Relay = await createRelay(settings)
  const answer: Response = await apart.app.fetch(signedRequest(fixtureOf('push')))
  assert.deepEqual([answer.status, await answer.text(), await apart.journal.count()], [200, '{"ok":true}', 1])
  await apart[Symbol.asyncDispose]()
  const sandbox = await startSandbox()
  assert.match(await sandbox.token(), /^gho_/)
  sandbox.faults.next('comment', '502')
  await sandbox.stop()
})
`

/** A test that fails before it stops its relay, whose target has to be tried again. */
const FAILING = `
import assert from 'node:assert/strict'
import { fixtureOf, startRelay } from 'webhook-relay/testing'

afterEach(() => {})
test('fails', async () => {
  const relay = await startRelay({ forward: ['http://127.0.0.1:1/'] })
  await relay.deliver(fixtureOf('push'))
  assert.fail('as it should')
})
`

/** A test of node:test that leaves the end of its relay to the runner. */
const SIGNALLED = `
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRelay } from 'webhook-relay/testing'

let url = ''
test('starts', async ({ signal }) => {
  const relay = await startRelay({ signal })
  url = relay.url
  assert.equal((await fetch(url + '/health')).status, 200)
})
test('has stopped', async () => {
  await assert.rejects(fetch(url + '/health'))
})
`

/** The compilers, and how each is run with what to find a package. */
const COMPILERS = ['typescript-5.9', 'typescript-6', 'typescript-7']
const RESOLUTIONS = {
  node16: ['--module', 'node16'],
  nodenext: ['--module', 'nodenext'],
  bundler: ['--module', 'preserve', '--moduleResolution', 'bundler'],
}

describe.concurrent('a project of somebody else', () => {
  let project: PackedProject
  let tools: string

  beforeAll(async () => {
    ;[project, tools] = await Promise.all([packedProject(), installed(TOOLS)])
    for (const name of ['jest', '@jest', 'mocha'])
      symlinkSync(path.join(tools, 'node_modules', name), path.join(project.folder, 'node_modules', name))
    for (const [runner, imports] of Object.entries(RUNNERS)) {
      const folder = path.join(project.folder, runner)
      mkdirSync(folder)
      writeFileSync(path.join(folder, 'bot.test.mts'), imports + BODY)
      writeFileSync(path.join(folder, 'failing.test.mts'), imports + FAILING)
      // vitest runs no CommonJS.
      if (runner !== 'vitest') writeFileSync(path.join(folder, 'bot.test.cts'), imports + BODY)
    }
    writeFileSync(path.join(project.folder, 'node/signal.test.mjs'), SIGNALLED)
  })

  const compile = (typescript: string, ...options: readonly string[]): Promise<string> => {
    const own = typescript === 'typescript-7' && path.resolve('node_modules/typescript')
    const compiler = path.join(own || path.join(tools, 'node_modules', typescript), 'bin/tsc')
    const roots = ['node_modules/@types', path.join(tools, 'node_modules/@types')]
    const types = [
      '--typeRoots',
      roots.join(','),
      '--types',
      'node',
      '--lib',
      'es2022',
      '--strict',
      '--esModuleInterop',
    ]
    return project.run(process.execPath, compiler, ...types, '--target', 'es2022', ...options)
  }

  it.each(
    COMPILERS.flatMap((typescript) =>
      Object.entries(RESOLUTIONS).map(([name, options]) => ({ typescript, name, options })),
    ),
  )('compiles with $typescript and $name', async ({ typescript, options }) => {
    const files = ['node/bot.test.mts', 'node/bot.test.cts']
    expect(await compile(typescript, '--noEmit', ...options, ...files)).toBe('')
  })

  describe('runs its tests', () => {
    const files = Object.keys(RUNNERS).flatMap((runner) =>
      ['bot.test.mts', 'bot.test.cts', 'failing.test.mts'].map((name) => path.join(runner, name)),
    )
    beforeAll(async () => {
      const options = [
        '--skipLibCheck',
        '--types',
        'node,mocha',
        '--module',
        'node16',
        ...files.filter((name) => name !== 'vitest/bot.test.cts'),
      ]
      await compile('typescript-5.9', ...options)
    })
    const tool = (file: string): string => path.join(tools, 'node_modules', file)
    // The runners' own limits, 2 s and 5 s, are for a machine that does nothing else.
    const LIMIT_MS = '60000'
    const jest = (): readonly string[] => [tool('jest/bin/jest.js'), '--testTimeout', LIMIT_MS]
    const programs: Readonly<Record<string, () => readonly string[]>> = {
      jest: () => ['--experimental-vm-modules', ...jest()],
      mocha: () => [tool('mocha/bin/mocha.js'), '--timeout', LIMIT_MS],
      node: () => ['--test'],
      vitest: () => [project.tool('vitest/vitest.mjs'), 'run', '--testTimeout', LIMIT_MS],
    }

    it.each(Object.entries(programs))('with %s', async (runner, program) => {
      const names = runner === 'vitest' ? ['bot.test.mts', 'bot.test.mjs'] : ['bot.test.cjs', 'bot.test.mjs']
      if (runner === 'node') names.push('signal.test.mjs')
      const files = names.map((name) => `${runner}/${name}`)
      await expect(project.run(process.execPath, ...program(), ...files)).resolves.toBeDefined()
    })

    it('with jest in its usual set-up', async () => {
      const run = project.run(process.execPath, ...jest(), 'jest/bot.test.cjs')
      await expect(run).resolves.toBeDefined()
    })

    it.each(Object.entries(programs))('with %s, which ends though one fails', async (runner, program) => {
      const failing = project.run(process.execPath, ...program(), `${runner}/failing.test.mjs`)
      await expect(failing).rejects.toThrow('as it should')
    })
  })
})
