/** The settings that are secrets, with their variables. The table of settings marks no other ones. */
const OF_SETTINGS = {
  clientSecret: 'RELAY_CLIENT_SECRET',
  webhookSecret: 'RELAY_WEBHOOK_SECRET',
  webhookSecretPrevious: 'RELAY_WEBHOOK_SECRET_PREVIOUS',
  storePassword: 'PGPASSWORD',
  tokenKey: 'RELAY_TOKEN_KEY',
  tokenKeyPrevious: 'RELAY_TOKEN_KEY_PREVIOUS',
} as const

/** What a row of the table of settings says of a secret. */
export function secretSetting<Name extends keyof typeof OF_SETTINGS>(name: Name) {
  return { env: OF_SETTINGS[name], secret: true } as const
}

/** The variable with a source's secret. That with `_PREVIOUS` added has the one before it, and `_FILE` added to either names a file. */
export function secretVariable(source: string): string {
  return `RELAY_SOURCE_${source.replaceAll('-', '_').toUpperCase()}_SECRET`
}

/** Variables of sources: {@link secretVariable}, and what can be added to it. */
export const SOURCE_SECRET = /^RELAY_SOURCE_[A-Z0-9_]+_SECRET(?:_PREVIOUS)?(?:_FILE)?$/

/** Addresses that may contain passwords, and what libpq's programs and relay read a store's password from. */
const STANDING_FOR_SECRETS = ['RELAY_STORE', 'RELAY_FORWARD', 'PGPASSFILE']

const ALL: ReadonlySet<string> = new Set(
  [...Object.values(OF_SETTINGS), ...STANDING_FOR_SECRETS].flatMap((name) => [name, `${name}_FILE`]),
)

/** Whether a variable of relay's own environment holds a secret of relay, may hold one, or names a file with one. */
export function isSecretVariable(name: string): boolean {
  return ALL.has(name) || SOURCE_SECRET.test(name)
}
