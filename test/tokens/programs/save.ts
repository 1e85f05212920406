// Signs one user in again and again, with tokens of its own, at the same time as another process does.
import { openDatabase } from '../../../src/store/open.js'
import { createTokens } from '../../../src/tokens/tokens.js'
import { heard, say } from '../../store/programs/talk.js'

const [, , folder = '', rounds = '100', kind] = process.argv
const { store } = await openDatabase({ kind: kind === 'keychain' ? kind : 'file', folder })
const tokens = createTokens(store)

say('ready')
await heard()
for (let i = 0; i < Number(rounds); i++) {
  const accessToken = `${process.pid} ${i}`
  await tokens.save('ann', {
    accessToken,
    expiresAt: Date.now() + 60_000,
    origin: `https://${process.pid}.example`,
  })
  if (i % 10 === 0) await tokens.revoke('ann')
  const owner = await tokens.get('ann')
  // Saved by either process, but never the token of one with the origin of the other.
  if (owner && owner.origin !== `https://${owner.accessToken.split(' ')[0]}.example`) say(owner)
}
say('done')
process.exit()
