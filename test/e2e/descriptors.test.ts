import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { githubDelivery, post } from '../helpers/delivery.js'
import { emptyFolder } from '../helpers/context.js'
import { hasDatabase } from '../helpers/has-database.js'
import { eventually } from '../helpers/keyring.js'
import { describeWith } from '../helpers/needs.js'
import { Program } from '../helpers/program.js'
import { serve } from '../helpers/serve.js'

/** Writes down its process id, and stays as it was started. */
const STAY = 'echo $$ > "$OUT"; exec sleep 60'

/** Runs a program with a descriptor of the caller's that nothing closes when a program is started. */
const WITH_ANOTHER = ['bash', '-c', 'exec 77<>/dev/null; exec "$@"', 'bash']

let started: number | undefined

afterEach(() => {
  if (started !== undefined) process.kill(started)
  started = undefined
})

/** The descriptors of the process that has written its id to a file. */
async function descriptorsOf(file: string): Promise<string[]> {
  const pid = await eventually(() => idIn(file))
  started = pid
  await eventually(() => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n' || undefined)
  return readdirSync(`/proc/${pid}/fd`).toSorted()
}

function idIn(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined
  } catch {
    return undefined
  }
}

describeWith('Linux', 'descriptors of relay', () => {
  it('are not those of a command', async () => {
    const out = path.join(emptyFolder(), 'pid')
    await using program = serve(emptyFolder(), ['env', `OUT=${out}`, ...WITH_ANOTHER], ['--exec', STAY])
    await post(`${await program.url()}/webhook`, githubDelivery())
    expect(await descriptorsOf(out)).toEqual(['0', '1', '2'])
    expect(hasDatabase(program)).toBe(true)
  })

  it('are not those of the browser that login opens', async () => {
    const home = emptyFolder()
    const flags = ['--sandbox', '--sandbox-port', '0', '--port', '0', '--json']
    await using service = new Program(['serve', ...flags], { RELAY_HOME: home })
    await service.url()
    const [out, browser] = [path.join(home, 'pid'), path.join(home, 'browser')]
    writeFileSync(browser, `#!/bin/sh\n${STAY}\n`)
    chmodSync(browser, 0o755)
    const env = { RELAY_HOME: home, RELAY_PROFILE: 'sandbox', BROWSER: browser, OUT: out }
    await using login = new Program(['login'], env, WITH_ANOTHER)
    expect(await descriptorsOf(out)).toEqual(['0', '1', '2'])
    await login.says('Your browser opens')
    expect(hasDatabase(login)).toBe(true)
  })
})
