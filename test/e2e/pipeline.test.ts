import { expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Program } from '../helpers/program.js'
import { scriptShell, type ScriptResult } from '../helpers/script-shell.js'
import { signIn } from '../helpers/sign-in.js'

/** What a person's shell script does from signing in to signing out; `host` is the sandbox's address. */
async function act(run: (script: string) => Promise<ScriptResult>, host: string): Promise<void> {
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
    const run = scriptShell({ RELAY_HOME: home, RELAY_PROFILE: 'sandbox' })
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
    const run = scriptShell({ RELAY_HOME: emptyFolder(), RELAY_PORT: '0', ...codeHost(sandbox) })
    await act(run, sandbox.url)
    expect(sandbox.comments.map(({ body }) => body)).toEqual(expect.arrayContaining(['two\nlines', 'hello']))
  }, 120_000)
})

/** The `check_suite` event of a head, as GitHub sends it. */
function suiteOf(sandbox: string): string {
  const repository = { id: 1, full_name: 'octo/demo', html_url: `${sandbox}/octo/demo` }
  const pull = {
    id: 9,
    number: 2,
    url: `${sandbox}/api/v3/repos/octo/demo/pulls/2`,
    base: { repo: { id: 1 } },
  }
  const check_suite = { id: 5, status: 'completed', conclusion: 'success', pull_requests: [pull] }
  return JSON.stringify({ action: 'completed', check_suite, repository })
}

describeWith(['git', 'jq', 'curl'], 'a pipeline of a push', () => {
  it('merges what is green, and keeps one comment up to date', async () => {
    const home = emptyFolder()
    await using program = new Program(
      ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json'],
      { RELAY_HOME: home },
    )
    const { url, sandbox } = await program.listening()
    await signIn(url, 'ada')
    const run = scriptShell({
      RELAY_HOME: home,
      RELAY_PROFILE: 'sandbox',
      API: `${sandbox}/api/v3/repos/octo/demo`,
    })
    const setUp = await run(`
      set -e
      echo '${suiteOf(sandbox)}' > ../suite.json
      git init -q --bare ../remote.git
      printf '#!/bin/sh\\nexec relay replay "$HOME/suite.json" --event check_suite\\n' > ../remote.git/hooks/post-receive
      chmod +x ../remote.git/hooks/post-receive
      git init -q -b main . && git config user.name ada && git config user.email ada@example.org
      git remote add origin ../remote.git && git config push.autoSetupRemote true
      git commit -q --allow-empty -m one`)
    expect(setUp.code).toBe(0)
    const merge = 'relay wait check_suite.completed --json | relay merge --from - --if-green'
    expect(await run(`git push -q && ${merge} --dry-run --json | jq -r .target,.request.ifGreen`)).toEqual({
      code: 0,
      out: 'octo/demo#2\ntrue\n',
    })
    expect(await run(merge)).toEqual({ code: 3, out: '' })
    const report = (body: string): string =>
      `{ relay wait check_suite.completed --since 1h --json; echo '${body}'; } | relay comment --from - --sticky ci -`
    const first = await run(report('one'))
    expect(first).toEqual({ code: 0, out: expect.stringContaining('/octo/demo/pull/2#issuecomment-') })
    expect(await run(report('two'))).toEqual(first)
    const comments = 'relay token --header | curl -sS -H @- $API/issues/2/comments'
    expect(await run(`${comments} | jq -r '.[].body | select(contains("sticky"))'`)).toEqual({
      code: 0,
      out: '<!-- relay-sticky: ci -->\ntwo\n\n',
    })
    const green = `
      sha=$(relay token --header | curl -sS -H @- $API/pulls/2 | jq -r .head.sha)
      relay token --header | curl -sS -H @- $API/statuses/$sha -d '{"state":"success","context":"ci"}' > status.json`
    expect(await run(`${green}; ${merge.replace('wait', 'wait --since 1h')}`)).toEqual({
      code: 0,
      out: expect.stringMatching(/^[0-9a-f]{40}\n$/),
    })
    expect(await run(`false | relay merge --from - --if-green`)).toEqual({ code: 6, out: '' })
  }, 120_000)
})
