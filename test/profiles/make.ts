// Writes the profiles: version-11/ by the relay of commit 28cf0ad3, version-12/ by that of 7dbcde6c, version-13/ by that of
// ec5b3342, version-14/ by that of 0856414f. In a checkout of that commit, built:
//   cp <this file> test/profiles/make.test.ts
//   RELAY_TEST_BUILT=1 OUT=<folder> npx vitest run test/profiles/make.test.ts
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { postgresProgram } from '../kit/postgres-server.js'
import { place, REPO } from '../kit/place.js'

/** The profile has its name in what is encrypted, and in the name of its schema. */
const RELAY_PROFILE = 'earlier'
/** Else the relay's own, which is another one each time. */
const RELAY_PUBLIC_URL = 'https://relay.example'
const OUT = process.env['OUT'] ?? ''
/** The key of the keychain for an account, in a process of its own, as relay asks for it. */
const KEY = `require('keytar').getPassword('relay', process.argv[1]).then((key) => process.stdout.write(key))`

it.each(['file', 'keychain', 'postgres'] as const)('a profile with the store %s', async (store) => {
  await using here = await place({
    store,
    env: { RELAY_PROFILE, RELAY_PUBLIC_URL, RELAY_WEBHOOK_SECRET: undefined },
  })
  const script = (name: string, text: string): void => {
    writeFileSync(path.join(here.cwd, name), `#!/bin/sh\n${text}\n`)
    chmodSync(path.join(here.cwd, name), 0o755)
  }
  script('succeeds', 'cat > /dev/null; echo done')
  script('fails', 'echo no >&2; exit 1')
  script('waits', 'exec sleep 1000')
  const out = async (...argv: string[]): Promise<string> => {
    const ran = await here.run(...argv)
    expect({ argv, code: ran.code, err: ran.err }).toMatchObject({ code: 0 })
    return ran.out
  }
  await here.useToken()
  const added = await here.runWith({ stdin: 'whsec_of_the_fixture' }, 'source', 'add', 'stripe')
  expect(added.code).toBe(0)
  const routes = ['succeeds', 'fails', 'waits'].flatMap((name) => ['--exec', `./${name}`])
  const relay = await here.serveWith({ built: true, cwd: here.cwd }, ...routes)
  await out('hook', 'add', REPO)
  const secret = (await out('config', '--reveal', 'webhookSecret')).trim()
  for (let i = 1; i <= 5; i++) {
    const body = `{"number": ${i},  "text": "\\u00fc ü 😀", "repository": {"full_name": "${REPO}"}}`
    const answer = await relay.deliver({
      id: `delivery-${i}`,
      body,
      secret,
      event: i % 2 ? 'push' : 'issues',
    })
    expect(answer.status).toBe(200)
  }
  await relay.object({ type: 'attempt', n: 2, state: 'failed' })
  // Comes again, and is forwarded again where it failed.
  await relay.deliver({ id: 'delivery-2', body: '{}', secret, event: 'issues' })
  await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 5)
  await relay.objects({ type: 'attempt', state: 'failed' }, 6)
  await relay.stop('SIGKILL')

  const commands = [
    ['log', '--json', '--last', '100'],
    ...[1, 2, 3, 4, 5].flatMap((n) => [
      ['show', `${n}`, '--json'],
      ['show', `${n}`, '--body'],
    ]),
    ['log', '--failed', '--json'],
    ['log', '--status', 'waiting', '--json'],
    ['source', 'list', '--json'],
    ['config', '--reveal', 'webhookSecret'],
    ['token'],
  ]
  const printed = []
  for (const argv of commands) printed.push({ argv, out: await out(...argv) })
  const { RELAY_STORE, RELAY_USER, RELAY_PROVIDER, RELAY_PROVIDER_URL } = here.env
  const env = { RELAY_PROFILE, RELAY_PUBLIC_URL, RELAY_USER, RELAY_PROVIDER, RELAY_PROVIDER_URL }
  const folder = path.join(here.home, RELAY_PROFILE)
  const target = path.join(OUT, store)
  mkdirSync(target, { recursive: true })
  const key =
    store === 'keychain'
      ? execFileSync(process.execPath, ['-e', KEY, folder], {
          env: { ...process.env, ...here.env },
        }).toString()
      : undefined
  writeFileSync(path.join(target, 'profile.json'), readFileSync(path.join(folder, 'profile.json')))
  // Packed, since it has tokens, though of sandboxes that have ended.
  writeFileSync(
    path.join(target, 'printed.json.gz'),
    gzipSync(JSON.stringify({ env, key, printed }), { level: 9 }),
  )
  if (store !== 'postgres') {
    writeFileSync(
      path.join(target, 'relay.db.gz'),
      gzipSync(readFileSync(path.join(folder, 'relay.db')), { level: 9 }),
    )
    return
  }
  const dump = ['--inserts', '--no-owner', RELAY_STORE ?? '']
  const text = execFileSync(postgresProgram('pg_dump') ?? '', dump, {
    env: { PGPASSWORD: here.env['PGPASSWORD'] },
  })
  // psql's own commands, which are of the dump's day.
  const sql = text.toString().replaceAll(/^\\.*$/gm, '')
  writeFileSync(path.join(target, 'postgres.sql.gz'), gzipSync(sql, { level: 9 }))
})
