import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'

describe('tokens that two processes save for one user concurrently', () => {
  it('leave one token, with its own origin and one index entry', async () => {
    const folder = emptyFolder()
    await using one = start('tokens/programs/save', [folder])
    await using two = start('tokens/programs/save', [folder])
    for (const process of [one, two]) expect(await process.line()).toBe('"ready"')
    for (const process of [one, two]) process.tell('go')
    for (const process of [one, two]) expect(await process.line()).toBe('"done"')

    await using database = await openDatabase({ kind: 'file', folder })
    const { accessToken = '', origin } = (await createTokens(database.store).get('ann')) ?? {}
    const hash = createHash('sha256').update(accessToken).digest('hex')
    expect(await database.store.list('')).toEqual([`bearer:${hash}:ann`, 'origin:ann', 'token:ann'])
    expect(origin).toBe(`https://${accessToken.split(' ')[0]}.example`)
    expect(await createTokens(database.store).findByBearer(accessToken)).toMatchObject({
      userId: 'ann',
      accessToken,
    })
  })

  it('stop working at once when another process revokes them', async () => {
    const folder = emptyFolder()
    await using one = await openDatabase({ kind: 'file', folder })
    await using two = await openDatabase({ kind: 'file', folder })
    const [ours, theirs] = [createTokens(one.store), createTokens(two.store)]
    for (let i = 0; i < 50; i++) {
      await ours.save('ann', {
        accessToken: `t${i}`,
        expiresAt: Date.now() + 60_000,
        origin: 'https://github.com',
      })
      expect((await ours.findByBearer(`t${i}`))?.userId).toBe('ann')
      await theirs.revoke('ann')
      expect(await ours.findByBearer(`t${i}`)).toBeUndefined()
    }
  })
})
