import { expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { createIntake } from '../../src/webhook/intake.js'
import { GITEA, GITHUB, giteaDelivery, githubDelivery, SECRETS } from '../helpers/delivery.js'
import { describeWith } from '../kit/needs.js'
import { watchTurns } from '../helpers/turns.js'

const LENGTH = 25 * 1_048_576
const FORM = 'application/x-www-form-urlencoded'

describeWith('Linux', 'an unsigned body of 25 MiB', () => {
  it.each([
    ['a form of letters', GITEA, giteaDelivery, FORM, `payload=${'x'.repeat(LENGTH)}`],
    ['a form of escapes', GITEA, giteaDelivery, FORM, `payload=${'%41'.repeat(LENGTH / 3)}`],
    ['JSON', GITHUB, githubDelivery, 'application/json', `["${'x'.repeat(LENGTH)}"]`],
  ] as const)('blocks the event loop for less than 50 ms: %s', async (_, provider, deliver, type, body) => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const secrets = { ...SECRETS, previous: SECRETS.current }
    const intake = createIntake({ provider, secrets, journal: openJournal(database.sql) })
    const request = deliver({ body, type, secret: 'another' })
    using turns = watchTurns()
    await expect(intake.receive(request)).rejects.toThrow('Invalid signature')
    expect(turns.longest()).toBeLessThan(50)
  })
})
