import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { run } from '../kit/run.js'
import { receiver } from '../kit/receiver.js'

// `.env` of the working folder, whose author can be anyone, names no file of the user, and no way for relay's requests.

/** Fits secret settings: 32 bytes in base64. */
const SECRET = 'Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LWNhbm8='
/** What fits a setting: an invitation of a hub has a form of its own. */
const secretFor = (setting: string): string =>
  setting === 'hubToken' ? `relay-hub-${SECRET.slice(0, 43)}` : SECRET

/** Every setting with its variable, and whether it is a secret, as the program lists them. */
async function settings() {
  const { out: help } = await run(['help', 'settings'])
  const variables = [...help.matchAll(/^ {2}([A-Z_]+)\b/gm)].map(([, name = '']) => name)
  const { out } = await run(['config', '--json'])
  const shown = Object.entries<object>(JSON.parse(out).settings)
  expect(shown).toHaveLength(variables.length)
  return shown.map(([name, about], i) => ({ name, variable: variables[i] ?? '', isSecret: 'set' in about }))
}

/** A folder with `.env`; a file of this text that is in it, and one that is not. */
function folder(secret = SECRET) {
  const outside = emptyFolder()
  writeFileSync(path.join(outside, 'secret'), secret)
  const cwd = path.join(emptyFolder(), 'work')
  mkdirSync(path.join(cwd, 'sub'), { recursive: true })
  writeFileSync(path.join(cwd, '../secret'), secret)
  writeFileSync(path.join(cwd, 'sub/secret'), `${secret}\n`)
  symlinkSync(path.join(outside, 'secret'), path.join(cwd, 'link'))
  symlinkSync('link', path.join(cwd, 'link-to-link'))
  symlinkSync(outside, path.join(cwd, 'linked'))
  symlinkSync('sub/secret', path.join(cwd, 'own-link'))
  // The folder's name begins like its neighbour's.
  mkdirSync(`${cwd}-other`)
  writeFileSync(`${cwd}-other/secret`, secret)
  mkdirSync(path.join(cwd, '..sub'))
  writeFileSync(path.join(cwd, '..sub/secret'), secret)
  return { cwd, outside }
}

const OUTSIDE: Readonly<Record<string, (at: ReturnType<typeof folder>) => string>> = {
  'an absolute name': ({ outside }) => `${outside}/secret`,
  'a name with ..': () => '../secret',
  'a name that comes back': ({ cwd }) => `sub/../../${path.basename(cwd)}/../secret`,
  'a neighbour': ({ cwd }) => `../${path.basename(cwd)}-other/secret`,
  'a link': () => 'link',
  'a link to a link': () => './link-to-link',
  'a link to a folder': () => 'linked/secret',
  'a link of the system': () => '/proc/self/environ',
  'a file that is not there': () => 'nothing',
}
const INSIDE: Readonly<Record<string, (at: ReturnType<typeof folder>) => string>> = {
  'a name': () => 'sub/secret',
  'an absolute name': ({ cwd }) => `${cwd}/sub/secret`,
  'a link within': () => 'own-link',
  'a name with .. that stays': () => 'sub/../sub/secret',
  'a folder that begins with ..': () => '..sub/secret',
}

let all: Awaited<ReturnType<typeof settings>>
beforeAll(async () => {
  all = await settings()
})

/** The refusal of a file, without a word of what it holds. */
const refused = expect.objectContaining({
  code: 2,
  out: '',
  err: expect.stringMatching(
    /^error: \w+_FILE in \.env: \S+ (?:is not in this folder|cannot be read)(?!.*(?:canary|Y2F))/,
  ),
})

describe('a file that .env names for a secret', () => {
  it.each(Object.entries(OUTSIDE))(
    'is read for no setting outside the folder: %s, exit 2',
    async (_, name) => {
      const at = folder()
      for (const { variable } of all.filter(({ isSecret }) => isSecret)) {
        writeFileSync(path.join(at.cwd, '.env'), `${variable}_FILE=${name(at)}\n`)
        expect([variable, await run(['config'], { cwd: at.cwd })]).toEqual([variable, refused])
      }
    },
  )

  it.each(Object.entries(OUTSIDE))('nor for a source: %s, exit 2', async (_, name) => {
    const at = folder()
    const command = ['source', 'list', '--reveal', 'my-shop']
    const env = { RELAY_SOURCES: 'my-shop=stripe', RELAY_SOURCE_MY_SHOP_SECRET_PREVIOUS: 'whsec_previous' }
    for (const end of ['SECRET', 'SECRET_PREVIOUS']) {
      writeFileSync(path.join(at.cwd, '.env'), `RELAY_SOURCE_MY_SHOP_${end}_FILE=${name(at)}\n`)
      const own = end === 'SECRET' ? env : { ...env, RELAY_SOURCE_MY_SHOP_SECRET_PREVIOUS: '' }
      expect(await run(command, { cwd: at.cwd, env: own })).toEqual(refused)
    }
  })

  it.each(Object.entries(INSIDE))('is read in the folder: %s', async (_, name) => {
    for (const { name: setting, variable } of all.filter(({ isSecret }) => isSecret)) {
      const at = folder(secretFor(setting))
      writeFileSync(path.join(at.cwd, '.env'), `${variable}_FILE=${name(at)}\n`)
      const { out } = await run(['config', '--reveal', setting], { cwd: at.cwd })
      expect([setting, out.trim()]).toEqual([setting, secretFor(setting)])
    }
  })

  it('is read where the folder itself is reached by a link', async () => {
    const { cwd } = folder()
    const linked = path.join(emptyFolder(), 'linked')
    symlinkSync(cwd, linked)
    writeFileSync(path.join(cwd, '.env'), 'RELAY_WEBHOOK_SECRET_FILE=sub/secret\n')
    const { out } = await run(['config', '--reveal', 'webhookSecret'], { cwd: linked })
    expect(out.trim()).toBe(SECRET)
  })

  it('may be a pipe in the folder', async () => {
    const { cwd } = folder()
    execFileSync('mkfifo', [path.join(cwd, 'pipe')])
    writeFileSync(path.join(cwd, '.env'), 'RELAY_WEBHOOK_SECRET_FILE=pipe\n')
    const writer = spawn('sh', ['-c', `printf %s "${SECRET}" > "$0"`, path.join(cwd, 'pipe')])
    const { out } = await run(['config', '--reveal', 'webhookSecret'], { cwd })
    await once(writer, 'exit')
    expect(out.trim()).toBe(SECRET)
  })

  it('may be anywhere where the environment names it', async () => {
    for (const { name, variable } of all.filter(({ isSecret }) => isSecret)) {
      const { cwd, outside } = folder(secretFor(name))
      const env = { [`${variable}_FILE`]: `${outside}/secret` }
      const { out } = await run(['config', '--reveal', name], { cwd, env })
      expect([name, out.trim()]).toEqual([name, secretFor(name)])
    }
  })
})

it('.env names a file for no setting that is not a secret, and relay.json for none, exit 2', async () => {
  const { cwd } = folder()
  for (const { variable } of all.filter(({ isSecret }) => !isSecret)) {
    writeFileSync(path.join(cwd, '.env'), `${variable}_FILE=sub/secret\n`)
    expect([variable, (await run(['config'], { cwd })).code]).toEqual([variable, 2])
  }
  writeFileSync(path.join(cwd, '.env'), '')
  for (const { name } of all) {
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify({ [`${name}File`]: 'sub/secret' }))
    expect([name, (await run(['config'], { cwd })).code]).toEqual([name, 2])
  }
})

it('.env names no proxy, no certificate and no option of Node', async () => {
  await using proxy = await receiver()
  const cwd = emptyFolder()
  const loaded = path.join(cwd, 'loaded.mjs')
  const ran = path.join(cwd, 'ran')
  writeFileSync(loaded, `import fs from 'node:fs'; fs.writeFileSync(${JSON.stringify(ran)}, '')`)
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
  const variables = [
    ...names.map((name) => `${name}=${proxy.url}`),
    `NODE_OPTIONS=--import ${loaded}`,
    'NODE_TLS_REJECT_UNAUTHORIZED=0',
    `NODE_EXTRA_CA_CERTS=${loaded}`,
    'NODE_USE_ENV_PROXY=1',
    `BROWSER=touch ${ran}`,
    `PGPASSFILE=${loaded}`,
  ]
  writeFileSync(path.join(cwd, '.env'), variables.join('\n'))
  // No name server knows it, so that without a proxy nothing is sent.
  const env = { RELAY_PROVIDER_URL: 'https://git.invalid' }
  const options = { cwd, env, stdin: 'ghp_canary', built: true }
  expect(await run(['login', '--with-token'], options)).toMatchObject({ code: 8 })
  expect(proxy.received).toEqual([])
  await expect(once(spawn('test', ['-e', ran]), 'exit')).resolves.toEqual([1, null])
})
