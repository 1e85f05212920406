import { createHash } from 'node:crypto'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { emptyFolder } from '../helpers/context.js'
import { assignments, type Keyring, startKeyring } from '../helpers/keyring.js'
import { describeWith } from '../kit/needs.js'
import { start } from './programs/start.js'

const ROUNDS = 8
const numbers = Array.from({ length: ROUNDS }, (_, i) => i)

interface Won {
  readonly put: number[]
  readonly taken: number[]
  readonly deleted: number[]
}

describeWith('keyring', 'a keychain store that several processes have open', () => {
  let keyring: Keyring
  beforeAll(async () => void (keyring = await startKeyring()))
  afterAll(() => keyring[Symbol.asyncDispose]())

  const open = (folder: string) => openDatabase({ kind: 'keychain', folder, keychain: { env: keyring.env } })
  const run = (program: string, args: readonly string[]) =>
    start(program, args, ['env', ...assignments(keyring.env)])
  const newFolder = (name: string): string => path.join(emptyFolder(), name)

  it('gives each record to one of them, and loses no count', async () => {
    const folder = newFolder('race')
    await using database = await open(folder)
    const { store } = database
    await store.write(
      numbers.flatMap((i) => [
        { type: 'put', key: `token:take:${i}`, value: i },
        { type: 'put', key: `token:delete:${i}`, value: i },
      ]),
    )
    await using one = run('store/programs/race', [folder, `${ROUNDS}`, 'token:'])
    await using two = run('store/programs/race', [folder, `${ROUNDS}`, 'token:'])
    await Promise.all([one.line(), two.line()])
    for (const process of [one, two]) process.tell('go')
    const won = (await Promise.all([one.line(), two.line()])).map((line): Won => JSON.parse(line))

    for (const prize of ['put', 'taken', 'deleted'] as const) {
      expect(won.flatMap((of) => of[prize]).toSorted((a, b) => a - b)).toEqual(numbers)
    }
    expect(await store.get('token:count')).toBe(2 * ROUNDS)
    expect(await store.list('')).toEqual(['token:count', ...numbers.map((i) => `token:put:${i}`)])
  })

  it('ends with one token, its own origin and one index, when two sign the same user in', async () => {
    const folder = newFolder('save')
    await using one = run('tokens/programs/save', [folder, '20', 'keychain'])
    await using two = run('tokens/programs/save', [folder, '20', 'keychain'])
    for (const process of [one, two]) expect(await process.line()).toBe('"ready"')
    for (const process of [one, two]) process.tell('go')
    for (const process of [one, two]) expect(await process.line()).toBe('"done"')

    await using database = await open(folder)
    const { accessToken = '', origin } = (await createTokens(database.store).get('ann')) ?? {}
    const hash = createHash('sha256').update(accessToken).digest('hex')
    expect(await database.store.list('')).toEqual([`bearer:${hash}:ann`, 'origin:ann', 'token:ann'])
    expect(origin).toBe(`https://${accessToken.split(' ')[0]}.example`)
  })

  it('continues after one was killed in the middle of a write, with a token that is whole or none', async () => {
    const folder = newFolder('crash')
    await using database = await open(folder)
    const tokens = createTokens(database.store)
    await using program = run('tokens/programs/save', [folder, '1000', 'keychain'])
    expect(await program.line()).toBe('"ready"')
    program.tell('go')
    await sleep(500 + Math.random() * 200)
    await program.kill()

    const { pid } = program.child
    const none = { accessToken: `${pid} none`, origin: `https://${pid}.example` }
    const { accessToken, origin } = (await tokens.get('ann')) ?? none
    expect([accessToken.split(' ')[0], origin]).toEqual([`${pid}`, none.origin])
    const mine = { accessToken: 'mine', expiresAt: 4_102_444_800_000, origin: 'https://me.example' }
    await tokens.save('ann', mine)
    expect(await tokens.findByBearer('mine')).toEqual({
      userId: 'ann',
      accessToken: 'mine',
      expiresAt: 4_102_444_800_000,
      origin: 'https://me.example',
    })
    expect(await tokens.revoke('ann')).toBe(true)
    expect(await database.store.list('token:')).toEqual([])
  })
})
