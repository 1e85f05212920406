import { SECRET } from './delivery.js'
import { KEY, PASSWORD, type PostgresServer } from './postgres.js'
import { Program } from './program.js'

/** What `relay` needs to use the database of this server. */
export function serviceEnvironment(
  { store }: PostgresServer,
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  return {
    RELAY_STORE: String(store),
    RELAY_TOKEN_KEY: KEY.reveal(),
    RELAY_WEBHOOK_SECRET: SECRET,
    PGPASSWORD: PASSWORD,
    ...more,
  }
}

/** One of the relays of a service, as a process of its own. */
export interface ServiceRelay extends AsyncDisposable {
  readonly program: Program
  readonly url: string
}

/** Starts another relay of the service whose data this server has. */
export async function startServiceRelay(
  server: PostgresServer,
  flags: readonly string[] = [],
  more: Readonly<Record<string, string>> = {},
): Promise<ServiceRelay> {
  const program = new Program(['serve', '--port', '0', '--json', ...flags], serviceEnvironment(server, more))
  const url = await program.url()
  return { program, url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() }
}
