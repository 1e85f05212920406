import { Secret } from '../base/secret.js'
import {
  DEFAULT_KEEP,
  DEFAULT_KEEP_MAX,
  DEFAULT_MAX_BODY,
  DEFAULT_TOKEN_TTL,
  NO_HAND_ON,
  type Settings,
} from '../base/settings.js'
import { serve, type ServeOptions, type Serving } from '../serve/serve.js'

export interface TestRelayOptions extends Omit<ServeOptions, 'sandboxPort'> {
  /** Overrides of the settings below, e.g. `maxBody`. */
  readonly settings?: Partial<Settings>
}

/** A relay for a test: with a sandbox, in memory, on free loopback ports; end it with `await using`. */
export type TestRelay = Serving & { readonly sandbox: NonNullable<Serving['sandbox']> }

/** Signs and verifies in tests; it protects nothing. */
const TEST_SECRET = "It's a Secret to Everybody"

/** Starts a {@link TestRelay}. Its webhook secret is `It's a Secret to Everybody` unless the settings say otherwise. */
export async function startRelay({ settings, ...options }: TestRelayOptions = {}): Promise<TestRelay> {
  const serving = await serve({ ...testSettings(), ...settings }, { ...options, sandboxPort: 0 })
  const { sandbox } = serving
  if (!sandbox) throw new Error('unreachable: a sandbox port was given')
  return { ...serving, sandbox }
}

function testSettings(): Settings {
  return {
    profile: 'test',
    folder: '',
    provider: 'sandbox',
    providerUrl: 'http://127.0.0.1',
    webhookSecrets: { current: new Secret(TEST_SECRET) },
    host: '127.0.0.1',
    port: 0,
    allowedHosts: [],
    store: 'memory',
    maxBody: DEFAULT_MAX_BODY,
    tokenTtl: DEFAULT_TOKEN_TTL,
    handOn: NO_HAND_ON,
    concurrency: 1,
    onDuplicate: 'if-failed',
    keep: DEFAULT_KEEP,
    keepMax: DEFAULT_KEEP_MAX,
  }
}
