import { expect, it } from 'vitest'
import type { Env } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { signInAt } from '../kit/pages.js'
import { place, type Place } from '../kit/place.js'
import type { Ran } from '../kit/run.js'
import { browserProgram, programFolder, shell } from '../kit/shell.js'

type Script = (script: string) => Promise<Pick<Ran, 'code' | 'out'>>

/** A shell of the user ada, whose browser presses Authorize. */
async function shellWithBrowser(env: Env): Promise<{ readonly run: Script } & AsyncDisposable> {
  const programs = programFolder({ leashed: true })
  const browser = await browserProgram(programs, async ({ body }) => {
    await signInAt(body.toString())
    return 200
  })
  const bash = shell({ RELAY_USER: 'ada', BROWSER: browser.command, ...env }, programs)
  return {
    async run(script) {
      const { code, out } = await bash(script)
      return { code, out }
    },
    [Symbol.asyncDispose]: () => browser[Symbol.asyncDispose](),
  }
}

/** How a script ends that succeeds. */
const prints = (out: string) => ({ code: 0, out })

/** Starts a relay with its sandbox, whose profile is `sandbox`. */
async function serveSandbox(here: Place) {
  const serving = await here.serveWith({ built: true }, '--sandbox', '--sandbox-port', '0')
  return { serving, ...(await serving.listening()) }
}

/** What a person's shell script does from signing in to signing out; `host` is the sandbox's address. */
async function act(run: Script, host: string): Promise<void> {
  const commentAddress = expect.stringMatching(
    new RegExp(String.raw`^${host}/octo/demo/issues/1#issuecomment-\d+\n$`),
  )
  expect(await run('relay whoami')).toEqual({ code: 4, out: '' })
  expect(await run('relay login')).toEqual(prints(''))
  expect(await run('relay whoami --json | jq -r .user,.login,.providerUrl')).toEqual(
    prints(`ada\nocto\n${host}\n`),
  )
  expect(await run("printf 'two\\nlines' | relay comment octo/demo#1 -")).toEqual(prints(commentAddress))
  expect(await run('relay comment octo/demo#1 hello --json | jq .ok,.v')).toEqual(prints('null\n1\n'))
  expect(await run('relay react octo/demo#1 🚀')).toEqual(prints('rocket\n'))
  expect(await run('relay merge octo/demo#2')).toEqual(prints(expect.stringMatching(/^[0-9a-f]{40}\n$/)))
  expect(await run('relay merge octo/demo#2')).toEqual({ code: 8, out: '' })
  expect(await run(`relay token --header | curl -sS -H @- ${host}/api/v3/user | jq -r .login`)).toEqual(
    prints('octo\n'),
  )
  expect(await run('relay revoke')).toEqual(prints(''))
  expect(await run('relay comment octo/demo#1 again')).toEqual({ code: 4, out: '' })
  expect(await run('relay token')).toEqual({ code: 4, out: '' })
}

describeWith(['jq', 'curl'], 'a shell script', () => {
  it('signs in, acts and signs out through a running instance', async () => {
    await using here = await place({ host: 'none' })
    const { serving, url, sandbox } = await serveSandbox(here)
    await using bash = await shellWithBrowser({ RELAY_HOME: here.home, RELAY_PROFILE: 'sandbox' })
    const { run } = bash
    await act(run, sandbox)
    expect(await serving.object({ event: 'pull_request' })).toMatchObject({ action: 'closed', number: 2 })
    // The bearer of a second sign-in works at the service's own API too, until it is revoked.
    expect(await run('relay login')).toEqual(prints(''))
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'by curl' })
    const call = `curl -sS -H @- -H 'Content-Type: application/json' -d '${body}' ${url}/api/comment`
    expect(await run(`relay token --header | ${call} | jq .ok`)).toEqual(prints('true\n'))
    expect(await run(`relay token --header > header; relay revoke; ${call} < header | jq -r .error`)).toEqual(
      {
        code: 0,
        out: 'Invalid or expired token\n',
      },
    )
  })
})

/**
 * The hook of a git repository that reports each push to the sandbox, which is no git server: it writes a file to the branch with
 * the pushed commit's message. Saves the commit that the sandbox made of it.
 */
const POST_RECEIVE = `#!/bin/sh
set -e
while read -r before after ref; do
  message=$(git log -1 --format=%s "$after")
  jq -n --arg message "$message" --arg branch "\${ref#refs/heads/}" '{ $message, $branch, content: "" }' > "$HOME/push.json"
  relay token --header | curl -fsS -X PUT -H @- "$API/contents/README.md" -d "@$HOME/push.json" | jq -r .commit.sha > "$HOME/pushed"
done
`

/** Makes the working folder a clone with a branch of the sandbox's pull request #2. */
const CLONE = `
  set -e
  git init -q --bare ../remote.git
  cat > ../remote.git/hooks/post-receive <<'EOF'
${POST_RECEIVE}EOF
  chmod +x ../remote.git/hooks/post-receive
  git init -q -b greeting . && git config user.name ada && git config user.email ada@example.org
  git remote add origin ../remote.git && git config push.autoSetupRemote true`

const COMMIT = 'git commit -q --allow-empty -m'
/** Also when a busy machine took more than the usual 10 s since the push. */
const WAIT = 'relay wait check_suite.completed --since 1h --json'
/** Only the suite of the last push. */
const WAIT_FOR_PUSHED = `${WAIT} --where "check_suite.head_sha==$(cat ../pushed)"`
const MERGE = 'relay merge --from - --if-green'

describeWith(['git', 'jq', 'curl'], 'a pipeline of a push', () => {
  it('merges what is green, and keeps one comment up to date', async () => {
    await using here = await place({ host: 'none' })
    const { sandbox } = await serveSandbox(here)
    const API = `${sandbox}/api/v3/repos/octo/demo`
    await using bash = await shellWithBrowser({ RELAY_HOME: here.home, RELAY_PROFILE: 'sandbox', API })
    const { run } = bash
    expect(await run('relay login')).toEqual(prints(''))
    expect(await run(CLONE)).toEqual(prints(''))
    const read = (path: string, filter: string): ReturnType<Script> =>
      run(`relay token --header | curl -fsS -H @- $API/${path} | jq -r '${filter}'`)

    // What is merged is the head whose check has succeeded; --dry-run only says so.
    const green = `${COMMIT} 'Say hello' && git push -q && ${WAIT} | ${MERGE} --dry-run --json`
    const dry = await run(`${green} | jq -r .target,.request.sha; cat ../pushed`)
    const [target, head, pushed] = dry.out.trim().split('\n')
    expect([dry.code, target, head]).toEqual([0, 'octo/demo#2', pushed])
    expect(await read('pulls/2', '.merged')).toEqual(prints('false\n'))

    const report = (body: string): ReturnType<Script> =>
      run(`{ ${WAIT_FOR_PUSHED}; echo '${body}'; } | relay comment --from - --sticky ci -`)
    const first = await report('one')
    expect(first).toEqual(prints(expect.stringContaining('/octo/demo/pull/2#issuecomment-')))

    // A commit with the word fail does not pass the sandbox's check.
    expect(await run(`${COMMIT} 'fail' && git push -q`)).toEqual(prints(''))
    for (const flag of ['', '--dry-run'])
      expect(await run(`${WAIT_FOR_PUSHED} | ${MERGE} ${flag} 2> ../why`)).toEqual({ code: 3, out: '' })
    expect((await run('cat ../why')).out).toContain('has not succeeded in test (failure)')
    expect(await report('two')).toEqual(first)
    const sticky = '.[].body | select(contains("relay-sticky"))'
    expect(await read('issues/2/comments', sticky)).toEqual({
      code: 0,
      out: '<!-- relay-sticky: ci -->\ntwo\n\n',
    })

    expect(await run(`${COMMIT} 'Say it right' && git push -q && ${WAIT_FOR_PUSHED} | ${MERGE}`)).toEqual(
      prints(expect.stringMatching(/^[0-9a-f]{40}\n$/)),
    )
    expect(await read('pulls/2', '.merged')).toEqual(prints('true\n'))
    expect(await run(`false | ${MERGE}`)).toEqual({ code: 6, out: '' })
  })
})
