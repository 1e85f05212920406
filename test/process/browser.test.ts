import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { addressOf } from '../kit/pages.js'
import { type Place, place } from '../kit/place.js'

/** Programs that write their arguments, one on a line, to `args`. `works` ends well, and `fails` does not. */
function programs() {
  const folder = path.join(emptyFolder(), 'with spaces')
  mkdirSync(folder)
  const args = path.join(folder, 'args')
  const add = (name: string, code: number): string => {
    const program = path.join(folder, name)
    const write = `printf '%s\\n' "$@" > "${args}.new" && mv "${args}.new" "${args}"`
    writeFileSync(program, `#!/bin/sh\n${code === 0 ? write : ''}\nexit ${code}\n`)
    chmodSync(program, 0o755)
    return program
  }
  add('works', 0)
  add('fails', 3)
  const written = async (): Promise<string[]> => {
    await expect.poll(() => existsSync(args)).toBe(true)
    return readFileSync(args, 'utf8').trim().split('\n')
  }
  return { folder, written }
}

/** The arguments with which `relay login` starts the browser, and the address that it prints. */
async function opened(here: Place, browser: string, more: Record<string, string> = {}) {
  const { folder, written } = programs()
  const env = {
    BROWSER: browser.replaceAll('DIR', folder),
    PATH: `${folder}:${process.env['PATH']}`,
    ...more,
  }
  await using login = here.startWith({ built: true, env: { RELAY_PORT: '0', ...env } }, 'login')
  const address = await addressOf(login)
  return { args: await written(), address, said: login.err }
}

it.each([
  ['a program', 'works', ['URL']],
  ['a program whose path has spaces', 'DIR/works', ['URL']],
  ['arguments', 'works --new-window -P work', ['--new-window', '-P', 'work', 'URL']],
  ['a place for the address', 'works --app=%s --incognito', ['--app=URL', '--incognito']],
  ['a list, of which the first is not there', 'no-such-program:works %s', ['URL']],
  ['a list, of which the first fails', 'fails:works -x %s', ['-x', 'URL']],
])('BROWSER can be %s', async (_, browser, expected) => {
  await using here = await place()
  const { args, address, said } = await opened(here, browser)
  expect(args).toEqual(expected.map((word) => word.replace('URL', address)))
  expect(said).toContain('Your browser opens.')
})

it('BROWSER opens in a terminal of VS Code over SSH, and in no other over SSH', async () => {
  await using here = await place()
  const ssh = { SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22' }
  const { args, address, said } = await opened(here, 'works', { ...ssh, TERM_PROGRAM: 'vscode' })
  expect([args, said.includes('ssh -L')]).toEqual([[address], false])
  const env = { RELAY_PORT: '0', BROWSER: 'true', ...ssh }
  await using login = here.startWith({ built: true, env }, 'login', '--no-browser')
  await login.says('ssh -L')
})
