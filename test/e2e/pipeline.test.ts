import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Program } from '../helpers/program.js'

interface Result {
  readonly code: number
  readonly out: string
}

/** A shell in which `relay` is the built program and the browser presses Authorize. */
function shell(env: Readonly<Record<string, string>>) {
  const bin = emptyFolder()
  const program = (name: string, command: string): string => {
    const file = path.join(bin, name)
    writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"\n`)
    chmodSync(file, 0o755)
    return file
  }
  program('relay', `"${process.execPath}" "${path.resolve('dist/bin/relay.js')}"`)
  const browser = program(
    'browser',
    `"${process.execPath}" --import "${import.meta.resolve('tsx')}" "${path.resolve('test/e2e/programs/authorize.ts')}"`,
  )
  const cwd = path.join(bin, 'work')
  mkdirSync(cwd)
  const PATH = `${bin}:${process.env['PATH']}`
  return (script: string): Promise<Result> =>
    new Promise((resolve) => {
      const options = { cwd, env: { PATH, HOME: bin, BROWSER: browser, RELAY_USER: 'ada', ...env } }
      const child = execFile('bash', ['-o', 'pipefail', '-c', script], options, (_, out) => {
        resolve({ code: child.exitCode ?? -1, out })
      })
    })
}

/** What a person's shell script does from signing in to signing out; `host` is the sandbox's address. */
async function act(run: (script: string) => Promise<Result>, host: string): Promise<void> {
  const commentAddress = expect.stringMatching(
    new RegExp(String.raw`^${host}/octo/demo/issues/1#issuecomment-\d+\n$`),
  )
  expect(await run('relay whoami')).toEqual({ code: 4, out: '' })
  expect(await run('relay login')).toEqual({ code: 0, out: '' })
  expect(await run('relay whoami --json | jq -r .user,.login,.providerUrl')).toEqual({
    code: 0,
    out: `ada\nocto\n${host}\n`,
  })
  expect(await run("printf 'two\\nlines' | relay comment octo/demo#1 -")).toEqual({
    code: 0,
    out: commentAddress,
  })
  expect(await run('relay comment octo/demo#1 hello --json | jq .ok,.v')).toEqual({
    code: 0,
    out: 'null\n1\n',
  })
  expect(await run('relay react octo/demo#1 🚀')).toEqual({ code: 0, out: 'rocket\n' })
  expect(await run('relay merge octo/demo#2')).toEqual({
    code: 0,
    out: expect.stringMatching(/^[0-9a-f]{40}\n$/),
  })
  expect(await run('relay merge octo/demo#2')).toEqual({ code: 8, out: '' })
  expect(await run(`relay token --header | curl -sS -H @- ${host}/api/v3/user | jq -r .login`)).toEqual({
    code: 0,
    out: 'octo\n',
  })
  expect(await run('relay revoke')).toEqual({ code: 0, out: '' })
  expect(await run('relay comment octo/demo#1 again')).toEqual({ code: 4, out: '' })
  expect(await run('relay token')).toEqual({ code: 4, out: '' })
}

describeWith(['chromium', 'jq', 'curl'], 'a shell script', () => {
  it('signs in, acts and signs out through a running instance', async () => {
    const home = emptyFolder()
    await using program = new Program(
      ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json'],
      {
        RELAY_HOME: home,
      },
    )
    const { url, sandbox } = await program.listening()
    const run = shell({ RELAY_HOME: home, RELAY_PROFILE: 'sandbox' })
    await act(run, sandbox)
    expect(await program.object({ event: 'pull_request' })).toMatchObject({ action: 'closed', number: 2 })
    // The bearer of a second sign-in works at the service's own API too, until it is revoked.
    expect(await run('relay login')).toEqual({ code: 0, out: '' })
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'by curl' })
    const call = `curl -sS -H @- -H 'Content-Type: application/json' -d '${body}' ${url}/api/comment`
    expect(await run(`relay token --header | ${call} | jq .ok`)).toEqual({ code: 0, out: 'true\n' })
    expect(await run(`relay token --header > header; relay revoke; ${call} < header | jq -r .error`)).toEqual(
      {
        code: 0,
        out: 'Invalid or expired token\n',
      },
    )
  }, 120_000)

  it('does the same with no instance running', async () => {
    await using sandbox = await startSandbox({ client: CLIENT })
    const run = shell({ RELAY_HOME: emptyFolder(), RELAY_PORT: '0', ...codeHost(sandbox) })
    await act(run, sandbox.url)
    expect(sandbox.comments.map(({ body }) => body)).toEqual(expect.arrayContaining(['two\nlines', 'hello']))
  }, 120_000)
})
