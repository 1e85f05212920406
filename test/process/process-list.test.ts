import { randomUUID } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { canary } from '../kit/canary.js'
import { hurryDevice } from '../kit/code-host.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { addressOf, device, deviceOf, signInAt } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { commandLines } from '../kit/processes.js'
import type { Running } from '../kit/run.js'
import { sentSecrets, tapRequests } from '../kit/tap.js'

/** How often processes are listed, in milliseconds. */
const SAMPLE_MS = 100

/** The command lines of all processes that there are from now on. */
function watchProcesses(): { text(): string } & Disposable {
  const seen = new Set<string>()
  const look = (): void => {
    for (const line of commandLines().split('\n')) seen.add(line.replaceAll('\0', ' '))
  }
  const timer = setInterval(look, SAMPLE_MS)
  return { text: () => [...seen].join('\n'), [Symbol.dispose]: () => clearInterval(timer) }
}

/** A browser that stays open for a while. */
function browser(): string {
  const program = path.join(emptyFolder(), 'browser')
  writeFileSync(program, '#!/bin/sh\nsleep 1\n')
  chmodSync(program, 0o755)
  return program
}

describeWith('Linux', 'the list of processes, which every user can see', () => {
  it('has no secret of relay serve, or of a sign-in in the browser, by device, or with a token', async () => {
    // That of the other tests could be in the list by somebody else's doing.
    const env = { BROWSER: browser(), DISPLAY: ':0', RELAY_WEBHOOK_SECRET: randomUUID() }
    await using here = await place({ env })
    const { sandbox } = here
    using processes = watchProcesses()
    using tap = tapRequests(Number(new URL(sandbox.url).port))
    const start = (...argv: string[]): Running => here.startWith({ built: true }, ...argv)
    const ends = async (login: Running): Promise<void> => expect((await login.ended).code).toBe(0)
    const serving = await here.serveWith({ built: true }, '--hook', 'octo/demo')
    {
      const login = start('login')
      await signInAt(await addressOf(login))
      await ends(login)
    }
    await serving.object({ type: 'hook', state: 'ready' })
    {
      await hurryDevice(sandbox)
      const login = start('login', '--device', '--user', 'grace')
      const { address, code } = await deviceOf(login)
      await device(address, code)
      await ends(login)
    }
    const stdin = await sandbox.token('repo')
    await ends(here.startWith({ built: true, stdin }, 'login', '--with-token', '--user', 'linus'))
    await serving.stop()

    const secrets = canary()
    secrets.secrets(sentSecrets(tap.requests))
    secrets.text('process list', processes.text())
    expect(secrets.textOf('process list')).toMatch(/relay\.cjs serve .*--hook octo\/demo/)
    expect(secrets.textOf('process list')).toMatch(/browser http:\/\/127\.0\.0\.1:\d+\/auth\/sandbox/)
    for (const flag of ['--device', '--with-token'])
      expect(secrets.textOf('process list')).toContain(`relay.cjs login ${flag}`)
    secrets.check(['PKCE verifier', 'access token', 'client secret', 'device code', 'webhook secret'])
  })
})
