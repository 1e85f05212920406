// The emulated code host alone, with the OAuth application that its environment names.
import { Secret } from '../../src/base/secret.js'
import { startSandbox } from '../../src/sandbox/start.js'

const sandbox = await startSandbox({
  clientId: process.env['RELAY_CLIENT_ID'] ?? '',
  clientSecret: new Secret(process.env['RELAY_CLIENT_SECRET'] ?? ''),
  port: Number(process.argv[2]),
})
process.once('SIGTERM', () => void sandbox.close())
