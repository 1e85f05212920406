import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { Env } from '../kit/folder.js'
import { keyring } from '../kit/keyring.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'
import { database } from '../kit/postgres.js'

/** Profiles that earlier relays wrote, one folder for each version of the data; make.ts there says how. */
const PROFILES = path.resolve('test/profiles')
const STORES = ['file', 'keychain', 'postgres'] as const
/** Longer than anybody runs these tests. */
const KEEP = ['--keep', '36500d']

interface Earlier {
  /** Of the earlier relay, without where its data was. */
  readonly env: Env
  /** Of the keychain. */
  readonly key?: string
  /** Each command, and what the earlier relay printed. */
  readonly printed: readonly { readonly argv: readonly string[]; readonly out: string }[]
}

const unpacked = (...names: string[]): Buffer => gunzipSync(readFileSync(path.join(PROFILES, ...names)))

/** Puts an earlier profile into a place. */
async function restore(here: Place, version: string, store: string, { env, key }: Earlier): Promise<void> {
  const folder = path.join(here.home, env['RELAY_PROFILE'] ?? '')
  mkdirSync(folder, { mode: 0o700 })
  if (store === 'postgres') return
  copyFileSync(path.join(PROFILES, version, store, 'profile.json'), path.join(folder, 'profile.json'))
  writeFileSync(path.join(folder, 'relay.db'), unpacked(version, store, 'relay.db.gz'), { mode: 0o600 })
  if (key === undefined) return
  const set = `require('keytar').setPassword('relay', process.argv[1], process.argv[2])`
  execFileSync(process.execPath, ['-e', set, folder, key], {
    env: { ...process.env, ...(await keyring()).env },
  })
}

/** What a forward waits for depends on the relay that runs now. */
const withoutNow = (name: string, value: unknown): unknown => (name === 'waitsFor' ? undefined : value)

/** JSON lines as objects, any other text as it is. */
function parsed(out: string): unknown[] {
  return out.split('\n').map((line) => (line.startsWith('{') ? JSON.parse(line, withoutNow) : line))
}

for (const version of readdirSync(PROFILES).filter((name) => name.startsWith('version-')))
  for (const store of STORES) {
    const needs = { file: [], keychain: ['keyring'], postgres: ['postgres'] } as const
    describeWith(needs[store], `a profile of ${version} with the store ${store}`, () => {
      it('is opened with nothing lost, and what waited is forwarded', async () => {
        const earlier: Earlier = JSON.parse(unpacked(version, store, 'printed.json.gz').toString())
        const { printed } = earlier
        const env = { ...earlier.env, RELAY_WEBHOOK_SECRET: undefined }
        await using shared = store === 'postgres' ? await database() : undefined
        await shared?.run(unpacked(version, store, 'postgres.sql.gz').toString())
        const own = store === 'keychain' ? { store } : {}
        await using here = await place({ host: 'none', ...own, env: { ...shared?.env, ...env } })
        await restore(here, version, store, earlier)
        const waits = path.join(here.cwd, 'waits')
        writeFileSync(waits, '#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\ncat >> got\necho >> got\n')
        chmodSync(waits, 0o755)
        const routes = ['succeeds', 'fails', 'waits'].flatMap((name) => ['--exec', `./${name}`])
        const relay = await here.serveWith({ built: true, cwd: here.cwd }, ...KEEP, ...routes)

        for (const { argv, out } of printed) {
          const ran = await here.runWith({ built: true }, ...argv)
          expect({ argv, ...ran, out: parsed(ran.out) }).toMatchObject({ argv, code: 0, out: parsed(out) })
        }

        writeFileSync(path.join(here.cwd, 'go'), '')
        const waited = printed.find(({ argv }) => argv.includes('waiting'))
        const numbers = parsed(waited?.out ?? '').flatMap((line) => Object(line).n ?? [])
        expect(numbers.length).toBeGreaterThan(2)
        await relay.objects({ type: 'attempt', target: 'exec:./waits', state: 'succeeded' }, numbers.length)
        const bodies = numbers.map((n) => {
          const shown = printed.find(({ argv }) => argv.join(' ') === `show ${n} --body`)
          return `${shown?.out.trimEnd()}\n`
        })
        expect(readFileSync(path.join(here.cwd, 'got'), 'utf8')).toBe(bodies.join(''))
        expect((await here.runWith({ built: true }, 'log', '--status', 'waiting')).out).toBe('')
        // What had succeeded or failed is not sent again.
        expect(parsed(relay.out).filter((line) => Object(line).type === 'attempt')).toHaveLength(
          numbers.length,
        )
        expect((await relay.stop()).code).toBe(0)
      })
    })
  }
