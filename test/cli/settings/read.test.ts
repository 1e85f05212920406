import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog, type Log } from '../../../src/base/log.js'
import { withDefaults } from '../../../src/old/settings/complete.js'
import { readOptions, type Flags } from '../../../src/old/settings/read.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

const read = (env: Record<string, string>, flags: Flags = {}, cwd = emptyFolder(), log: Log = silentLog) =>
  readOptions(testContext({ env, cwd }).context, flags, log).options

describe('readOptions', () => {
  it('prefers a flag to the environment, and the environment to .env', () => {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), 'RELAY_PORT=1\nRELAY_MAX_BODY=5\nRELAY_CLIENT_ID="id"\n')
    expect(read({ RELAY_PORT: '2', RELAY_MAX_BODY: '6' }, { port: '3' }, cwd)).toEqual(
      withDefaults({
        port: 3,
        maxBody: 6,
        clientId: 'id',
      }),
    )
  })

  it('treats an empty value as not set', () => {
    expect(read({ RELAY_PORT: '', RELAY_CLIENT_ID: '' })).toEqual(withDefaults({}))
  })

  it.each<[Record<string, string>, Flags, string]>([
    [{ RELAY_PORT: '65536' }, {}, 'RELAY_PORT: must be a whole number from 0 to 65535'],
    [{}, { port: '8o' }, '--port: must be a whole number from 0 to 65535'],
    [{ RELAY_PROVIDER: 'gitlab' }, {}, 'RELAY_PROVIDER: must be one of github, gitea, sandbox'],
    [{ RELAY_MAX_BODY: '26214401' }, {}, 'RELAY_MAX_BODY: must be a whole number from 1 to 26214400'],
    [{ RELAY_TOKEN_TTL: '30' }, {}, 'RELAY_TOKEN_TTL: must be a duration such as 12h or 30d'],
    [{ RELAY_BASE_URL: '/' }, {}, 'RELAY_BASE_URL: must be an absolute http:// or https:// address'],
    [{ RELAY_PUBLIC_URL: 'https://a:b@c' }, {}, 'RELAY_PUBLIC_URL: must not contain a user name or password'],
    [{ RELAY_PUBLIC_URL: 'https://a/?b=1' }, {}, 'RELAY_PUBLIC_URL: must not contain a query or a fragment'],
    [
      { RELAY_PROVIDER_URL: 'https://a/#b' },
      {},
      'RELAY_PROVIDER_URL: must not contain a query or a fragment',
    ],
    [{ RELAY_WEBHOOK_SECRET_FILE: '/dev/null' }, {}, 'RELAY_WEBHOOK_SECRET_FILE: /dev/null is empty'],
    [{}, { publicUrl: 'javascript:1' }, '--public-url: must be an absolute http:// or https:// address'],
    [
      { RELAY_PROFILE: '../x' },
      {},
      'RELAY_PROFILE: must be 1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ],
    [{ RELAY_ALLOWED_HOSTS: 'a,,b' }, {}, 'RELAY_ALLOWED_HOSTS: must be host names, separated by commas'],
  ])('refuses %j %j', (env, flags, message) => {
    expect(failure(() => read(env, flags))).toEqual({ kind: 'settings', message })
  })

  it('reads a secret from the file that <NAME>_FILE names, less one line end', () => {
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, 's3cret \n\n')
    expect(read({ RELAY_WEBHOOK_SECRET_FILE: file })).toEqual(withDefaults({ webhookSecret: 's3cret \n' }))
  })

  it('names the file of a secret that cannot be read', () => {
    expect(failure(() => read({ RELAY_CLIENT_SECRET_FILE: '/nowhere/secret' }))).toEqual({
      kind: 'settings',
      message: 'RELAY_CLIENT_SECRET_FILE: /nowhere/secret cannot be read',
    })
  })

  it('uses BASE_URL when RELAY_BASE_URL is not set', () => {
    expect(read({ BASE_URL: 'https://app.example/x/' })).toEqual(
      withDefaults({ baseUrl: 'https://app.example/x/' }),
    )
    expect(read({ BASE_URL: 'https://app.example', RELAY_BASE_URL: 'https://b.example' })).toEqual(
      withDefaults({
        baseUrl: 'https://b.example',
      }),
    )
  })

  it('ignores a BASE_URL that is not a web address, with a warning', () => {
    const warnings: string[] = []
    expect(
      read({ BASE_URL: '/' }, {}, emptyFolder(), { ...silentLog, warn: (text) => void warnings.push(text) }),
    ).toEqual(withDefaults({}))
    expect(warnings).toEqual([
      'BASE_URL is ignored: it is no absolute http:// or https:// address (RELAY_BASE_URL sets it for relay alone)',
    ])
  })
})
