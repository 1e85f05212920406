import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { withDefaults } from '../../../src/old/settings/complete.js'
import { OPTION_NAMES, specOf } from '../../../src/old/settings/options.js'
import { readOptions } from '../../../src/old/settings/read.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

function setUp(...lines: string[]) {
  const warnings: string[] = []
  const { context } = testContext()
  writeFileSync(path.join(context.cwd, '.env'), lines.join('\n'))
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) }
  return { context, warnings, read: () => readOptions(context, {}, log) }
}

/** What is wrong, with the places of files taken out. */
function wrong(...lines: string[]): string {
  const { context, read } = setUp(...lines)
  const { kind, message } = failure(read)
  expect(kind).toBe('settings')
  return String(message).replace(context.cwd, '…').replace(context.configFolder, '…')
}

describe('.env', () => {
  it('sets what relay.json may, and secrets', () => {
    const secret = path.join(emptyFolder(), 'secret')
    writeFileSync(secret, 'p\n')
    const { read, warnings } = setUp(
      'RELAY_PROFILE=shop',
      'RELAY_PROVIDER=gitea',
      'RELAY_PROVIDER_URL=https://git.example',
      'RELAY_CLIENT_ID=c',
      'RELAY_CLIENT_SECRET=s',
      'RELAY_WEBHOOK_SECRET=w',
      `RELAY_WEBHOOK_SECRET_PREVIOUS_FILE=${secret}`,
      'RELAY_BASE_URL=http://localhost:3000',
      'RELAY_PORT=8000',
      'RELAY_FORWARD=http://localhost:3000',
      'RELAY_EXEC=./deploy.sh',
    )
    expect(read().options).toEqual(
      withDefaults({
        profile: 'shop',
        provider: 'gitea',
        providerUrl: 'https://git.example',
        clientId: 'c',
        clientSecret: 's',
        webhookSecret: 'w',
        webhookSecretPrevious: 'p',
        baseUrl: 'http://localhost:3000',
        port: 8000,
        forward: ['http://localhost:3000'],
        exec: ['./deploy.sh'],
      }),
    )
    expect(warnings).toEqual([])
  })

  it('ignores variables of other programs, and empty ones', () => {
    const { read, warnings } = setUp('PATH=/evil', 'DATABASE_URL=x', 'RELAYS=1', 'RELAY_TUNNEL=')
    expect(read()).toEqual({ options: withDefaults({}), origins: {} })
    expect(warnings).toEqual([])
  })

  it('that is a folder is Python’s', () => {
    const { context } = testContext()
    mkdirSync(path.join(context.cwd, '.env'))
    expect(readOptions(context, {}, silentLog).options).toEqual(withDefaults({}))
  })

  const config = '…/config.json'
  it.each([
    ['RELAY_HOME', `set it in the environment, or as home in ${config}`],
    ['RELAY_TUNNEL', `set it in the environment, or with --tunnel, or as tunnel in ${config}`],
    ['RELAY_HOST', `set it in the environment, or with --host, or as host in ${config}`],
    ['RELAY_TOKEN_TTL', `set it in the environment, or as tokenTtl in ${config}`],
    ['RELAY_DEBUG', 'set it in the environment'],
  ])('refuses %s, and names where to set it', (name, where) => {
    expect(wrong('A=1', `${name}=x`)).toBe(`…/.env: ${name} cannot be set by a project: ${where}`)
  })

  it('refuses every setting that relay.json may not make', () => {
    const refused = OPTION_NAMES.map(specOf)
      .filter(({ project, secret }) => !project && !secret)
      .map(({ env }) => env)
    expect(refused).toEqual([
      'RELAY_HOME',
      'RELAY_USER',
      'RELAY_HOST',
      'RELAY_ALLOWED_HOSTS',
      'RELAY_INSPECT_HOSTS',
      'RELAY_METRICS',
      'RELAY_LOG_FORMAT',
      'RELAY_PUBLIC_URL',
      'RELAY_STORE',
      'RELAY_TOKEN_TTL',
      'RELAY_KEEP',
      'RELAY_KEEP_MAX',
      'RELAY_TUNNEL',
    ])
    for (const name of refused) expect(wrong(`${name}=x`)).toContain('cannot be set by a project')
  })

  it.each([
    ['RELAY_PROT=1', '…/.env: RELAY_PROT is not a setting (did you mean RELAY_PORT?)'],
    ['RELAY_SECRET=x', '…/.env: RELAY_SECRET is not a setting (did you mean RELAY_WEBHOOK_SECRET?)'],
    ['RELAY_CHANNEL=x', '…/.env: RELAY_CHANNEL is not a setting'],
    ['RELAY_FORWARD_FILE=x', '…/.env: RELAY_FORWARD_FILE is not a setting'],
    [
      'RELAY_FORWARD=push=https://evil.example',
      "RELAY_FORWARD in .env: must be on this machine in a project's file: RELAY_FORWARD in the environment sets any other",
    ],
    [
      'RELAY_BASE_URL=https://evil.example',
      "RELAY_BASE_URL in .env: must be on this machine in a project's file: RELAY_BASE_URL in the environment sets any other",
    ],
    ['RELAY_PORT=x', 'RELAY_PORT in .env: must be a whole number from 0 to 65535'],
  ])('refuses %s', (line, message) => {
    expect(wrong(line)).toBe(message)
  })

  it('may hold an application’s BASE_URL, which counts on this machine only', () => {
    expect(setUp('BASE_URL=http://localhost:1').read().options).toEqual(
      withDefaults({ baseUrl: 'http://localhost:1' }),
    )
    const { read, warnings } = setUp('BASE_URL=https://app.example')
    expect(read().options).toEqual(withDefaults({}))
    expect(warnings).toEqual([
      'BASE_URL in .env is ignored: it is no absolute http:// or https:// address on this machine (RELAY_BASE_URL in the environment sets it for relay alone)',
    ])
  })
})
