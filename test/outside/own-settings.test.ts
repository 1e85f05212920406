import { chmodSync, chownSync, lchownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

// The user's own settings run commands and name receivers of secrets: another user must not be able to change them.

const OTHER = 65_534

/** A folder for settings with a file of settings and one of a secret. */
function settings() {
  const configFolder = path.join(emptyFolder(), 'relay')
  mkdirSync(configFolder, { mode: 0o700 })
  const file = path.join(configFolder, 'config.json')
  const secret = path.join(configFolder, 'secret')
  writeFileSync(file, JSON.stringify({ exec: ['true'], webhookSecretFile: 'secret' }), { mode: 0o600 })
  writeFileSync(secret, 'a-secret', { mode: 0o600 })
  return { configFolder, file, secret }
}
type Place = ReturnType<typeof settings>

const HOSTILE: readonly (readonly [what: string, make: (place: Place) => unknown])[] = [
  ['a file of another user', ({ file }) => chownSync(file, OTHER, OTHER)],
  ['a file that anyone may write to', ({ file }) => chmodSync(file, 0o666)],
  [
    'a file that a foreign group may write to',
    ({ file }) => (chownSync(file, 0, OTHER), chmodSync(file, 0o660)),
  ],
  ['a folder of another user', ({ configFolder }) => chownSync(configFolder, OTHER, OTHER)],
  ['a folder that anyone may write to', ({ configFolder }) => chmodSync(configFolder, 0o777)],
  [
    'a folder below one that anyone may write to',
    ({ configFolder }) => chmodSync(path.dirname(configFolder), 0o777),
  ],
  [
    'a link of another user',
    ({ file, configFolder }) => {
      const target = path.join(configFolder, 'target.json')
      writeFileSync(target, '{"exec":["true"]}', { mode: 0o600 })
      rmSync(file)
      symlinkSync(target, file)
      lchownSync(file, OTHER, OTHER)
    },
  ],
  ['a secret of another user', ({ secret }) => chownSync(secret, OTHER, OTHER)],
  ['a secret that anyone may write to', ({ secret }) => chmodSync(secret, 0o666)],
]

describeWith('root', 'config.json', () => {
  it.each(HOSTILE)('is refused with what to do: %s', async (_, make) => {
    const own = settings()
    await using here = await place({ host: 'none', env: { RELAY_WEBHOOK_SECRET: undefined } })
    const { configFolder } = own
    expect(await here.runWith({ configFolder }, 'config', '--json')).toMatchObject({ code: 0, err: '' })
    make(own)
    const { code, out, err } = await here.runWith({ configFolder }, 'config', '--json')
    expect([code, out]).toEqual([2, ''])
    expect(JSON.parse(err).error).toMatch(/^relay does not read .*(?:chown -hR 0 \S+|chmod go-w \S+)$/)
  })

  it('that is not there is missed in no folder', async () => {
    const { configFolder, file } = settings()
    await using here = await place({ host: 'none' })
    rmSync(file)
    chmodSync(configFolder, 0o777)
    expect(await here.runWith({ configFolder }, 'config', '--json')).toMatchObject({ code: 0 })
  })
})

it('a file of the working folder does not name the profile of relay serve --sandbox', async () => {
  await using here = await place({ host: 'none', env: { RELAY_PROFILE: undefined } })
  for (const [file, text] of [
    ['.env', 'RELAY_PROFILE=default\n'],
    ['relay.json', '{"profile":"default"}'],
  ] as const) {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, file), text)
    const relay = here.startWith({ cwd }, 'serve', '--sandbox', '--port', '0', '--sandbox-port', '0')
    await relay.says('profile sandbox')
    expect((await relay.stop()).code).toBe(0)
  }
})
