import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import type { Store } from '../../src/store/contract.js'
import { type KeychainSettings, openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import {
  assignments,
  eventually,
  helpersOf,
  isAlive,
  readProc,
  startKeyring,
  startSession,
  startSilentSession,
} from '../helpers/keyring.js'
import { describeWith } from '../kit/needs.js'
import { start } from './programs/start.js'

const INSTALL = 'Install libsecret (Debian: libsecret-1-0), then install relay again, or use --store file'
const UNLOCK =
  'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring), or use --store file'
const SLOW = `it did not answer within 3 s. ${UNLOCK}`

const open = (keychain: KeychainSettings) =>
  openDatabase({ kind: 'keychain', folder: path.join(emptyFolder(), 'profile'), keychain })

/** How each call ends that needs the keychain, or may; and whether the file still works then. */
async function tryAll(store: Store): Promise<{ calls: string[]; file: unknown[] }> {
  const calls = [
    () => store.get('token:ada'),
    () => store.put('token:ada', 1),
    () => store.putIfAbsent('refresh:ada', 1),
    () => store.take('token:ada'),
    () => store.delete('token:ada'),
    () => store.list('token:'),
    () => store.list(''),
    () =>
      store.write([
        { type: 'put', key: 'lost', value: 1 },
        { type: 'delete', key: 'token:ada' },
      ]),
    () => store.sweep(),
  ]
  const ends: string[] = []
  for (const call of calls) ends.push(String(await call().catch((error: unknown) => error)))
  await store.put('file', 1)
  return { calls: ends, file: [await store.get('file'), await store.get('lost')] }
}

async function tryKeychain(settings: KeychainSettings): ReturnType<typeof tryAll> {
  await using database = await open(settings)
  return await tryAll(database.store)
}

function unusable(why: string): Awaited<ReturnType<typeof tryAll>> {
  return {
    calls: Array.from({ length: 9 }, () => `RelayError: The keychain cannot be used: ${why}`),
    file: [1, undefined],
  }
}

describeWith('Linux', 'a keychain that cannot be used says what to do', () => {
  it('keytar is not installed', async () => {
    expect(await tryKeychain({ module: 'keytar-that-is-not-there' })).toEqual(
      unusable(`keytar is not installed. ${INSTALL}`),
    )
  })

  it('keytar was built, but its library is missing', async () => {
    const module = path.join(emptyFolder(), 'keytar.cjs')
    const reason = 'libsecret-1.so.0: cannot open shared object file: No such file or directory'
    writeFileSync(module, `throw Object.assign(new Error('${reason}\\nmore'), { code: 'ERR_DLOPEN_FAILED' })`)
    expect(await tryKeychain({ module })).toEqual(unusable(`keytar cannot be loaded: ${reason}. ${INSTALL}`))
  })
})

describeWith('keyring', 'a keychain that fails says what to do', () => {
  it('no D-Bus session', async () => {
    const env = { PATH: process.env['PATH'], HOME: emptyFolder() }
    expect(await tryKeychain({ env })).toEqual(
      unusable(`Cannot autolaunch D-Bus without X11 $DISPLAY. ${UNLOCK}`),
    )
  })

  it('no keyring in the session', async () => {
    await using session = await startSession()
    const nobody = 'The name org.freedesktop.secrets was not provided by any .service files'
    expect(await tryKeychain({ env: session.env })).toEqual(unusable(`${nobody}. ${UNLOCK}`))
  })

  it('a locked keyring: what is in it is not taken for missing', async () => {
    await using keyring = await startKeyring()
    await using database = await open({ env: keyring.env })
    await database.store.put('token:ada', 1)
    keyring.lock()
    expect(await tryAll(database.store)).toEqual(
      unusable(`Cannot create an item in a locked collection. ${UNLOCK}`),
    )
  })
})

describeWith('keyring', 'a D-Bus that never answers', () => {
  it('fails each call after 3 s, those behind it at once, and holds up nothing else', async () => {
    await using session = await startSilentSession()
    await using database = await open({ env: session.env })
    const { store } = database
    const began = performance.now()
    const calls = [store.get('token:ada'), store.get('token:bob'), store.list('')]
    for (let i = 0; i < 50; i++) await store.put('file', i)
    expect(performance.now() - began).toBeLessThan(2500)
    const results = await Promise.allSettled(calls)
    expect(results.map((result) => result.status === 'rejected' && String(result.reason))).toEqual(
      results.map(() => `RelayError: The keychain cannot be used: ${SLOW}`),
    )
    expect(performance.now() - began).toBeGreaterThan(2900)
    expect(performance.now() - began).toBeLessThan(9000)
    expect(await store.get('file')).toBe(49)
    await expect(store.put('token:ada', 1)).rejects.toThrow(SLOW)
    // Killed by then, but the system may still be about it.
    await eventually(() => helpersOf(process.pid).length === 0 || undefined)
  })

  it('lets no more than 250 wait for their turn', async () => {
    await using session = await startSilentSession()
    await using database = await open({ env: session.env })
    const calls = Array.from({ length: 300 }, () => database.store.get('token:ada').catch(String))
    const ends = await Promise.all(calls)
    expect(ends.filter((end) => end === 'RelayError: The keychain is busy: try again')).toHaveLength(49)
    expect(ends.filter((end) => end === `RelayError: The keychain cannot be used: ${SLOW}`)).toHaveLength(251)
  })

  it('takes the helper with it when the program is killed in mid-call', async () => {
    await using session = await startSilentSession()
    await using program = start(
      'store/programs/keychain',
      [emptyFolder()],
      ['env', ...assignments(session.env)],
    )
    await session.reached
    const [helper = 0] = helpersOf(program.child.pid ?? 0)
    expect(isAlive(helper)).toBe(true)
    await program.kill()
    await eventually(() => !isAlive(helper) || undefined)
  })
})

describeWith('keyring', 'the helper', () => {
  it('that is killed in mid-call fails that call, and another takes its place', async () => {
    await using keyring = await startKeyring()
    await using silent = await startSilentSession()
    await using stuck = await open({ env: silent.env })
    const call = stuck.store.get('token:ada').catch(String)
    await silent.reached
    process.kill(helpersOf(process.pid)[0] ?? 0, 'SIGKILL')
    expect(await call).toMatch(
      /^RelayError: The keychain cannot be used: its helper process ended \(SIGKILL\)/,
    )

    await using database = await open({ env: keyring.env })
    const { store } = database
    await store.put('token:ada', 1)
    const [helper = 0] = helpersOf(process.pid)
    process.kill(helper, 'SIGKILL')
    await eventually(() => readProc(helper, 'stat') === '' || undefined)
    expect(await store.get('token:ada')).toBe(1)
    expect(helpersOf(process.pid)).toHaveLength(1)
  })

  it('ends with the store, and does not keep a program that forgot to close it', async () => {
    await using keyring = await startKeyring()
    await using database = await open({ env: keyring.env })
    await database.store.put('token:ada', 1)
    const [helper = 0] = helpersOf(process.pid)
    await database[Symbol.asyncDispose]()
    expect(isAlive(helper)).toBe(false)

    await using program = start(
      'store/programs/keychain',
      [emptyFolder()],
      ['env', ...assignments(keyring.env)],
    )
    const left = Number(await program.line())
    expect(await program.end()).toEqual({ code: 0, stderr: '' })
    await eventually(() => !isAlive(left) || undefined)
  })
})
