// Renews alice's token at the same time as other processes, by a clock that may be ahead. Prints what came of it.
import { toRelayError } from '../../../src/base/errors.js'
import { silentLog } from '../../../src/base/log.js'
import { Secret } from '../../../src/base/secret.js'
import { renew } from '../../../src/oauth/refresh.js'
import { createProvider } from '../../../src/providers/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { Tokens } from '../../../src/tokens/tokens.js'
import { CLIENT_ID, CLIENT_SECRET } from '../../helpers/authorization-server.js'
import { heard, say } from '../../store/programs/talk.js'

const [, , folder = '', url = '', ahead = '0'] = process.argv
const clock = () => Date.now() + Number(ahead)
const { store } = await openDatabase({ kind: 'file', folder, clock })
const parts = {
  provider: createProvider({ name: 'github', url }),
  client: { id: CLIENT_ID, secret: new Secret(CLIENT_SECRET) },
  store,
  tokens: new Tokens(store, clock),
  tokenTtl: 1000,
  clock,
  log: silentLog,
}

say('ready')
await heard()
try {
  say(await renew(parts, 'alice'))
} catch (error) {
  const { kind, message } = toRelayError(error)
  say({ kind, message })
}
process.exit()
