/** Environment variables of the settings that are secrets. The table of settings marks exactly these as secret. */
const OF_SETTINGS = {
  clientSecret: 'RELAY_CLIENT_SECRET',
  webhookSecret: 'RELAY_WEBHOOK_SECRET',
  webhookSecretPrevious: 'RELAY_WEBHOOK_SECRET_PREVIOUS',
  storePassword: 'PGPASSWORD',
  tokenKey: 'RELAY_TOKEN_KEY',
  tokenKeyPrevious: 'RELAY_TOKEN_KEY_PREVIOUS',
  hubToken: 'RELAY_HUB_TOKEN',
} as const

/** The columns `env` and `secret` of a secret's entry in the table of settings. */
export function secretSetting<Name extends keyof typeof OF_SETTINGS>(name: Name) {
  return { env: OF_SETTINGS[name], secret: true } as const
}

/**
 * Name of the environment variable with a source's secret. With `_PREVIOUS` appended it names the previous secret; with
 * `_FILE` appended to either, a file.
 */
export function secretVariable(source: string): string {
  return `RELAY_SOURCE_${source.replaceAll('-', '_').toUpperCase()}_SECRET`
}

/** Matches every variable of a source's secret: {@link secretVariable} with its suffixes. */
export const SOURCE_SECRET = /^RELAY_SOURCE_[A-Z0-9_]+_SECRET(?:_PREVIOUS)?(?:_FILE)?$/

/** Variables that may contain a password in an address or a header, and the one that names libpq's password file. */
const STANDING_FOR_SECRETS = ['RELAY_STORE', 'RELAY_FORWARD', 'RELAY_ROUTES', 'PGPASSFILE']

const ALL: ReadonlySet<string> = new Set(
  [...Object.values(OF_SETTINGS), ...STANDING_FOR_SECRETS].flatMap((name) => [name, `${name}_FILE`]),
)

/** True if an environment variable holds a secret of relay, may hold one, or names a file with one. */
export function isSecretVariable(name: string): boolean {
  return ALL.has(name) || SOURCE_SECRET.test(name)
}
