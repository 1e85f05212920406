import type { Provider } from '../providers/provider.js'

/** The scopes that relay needs and a token does not have; none where the provider does not name those of the token. */
export function missingScopes(
  { oauth }: Pick<Provider, 'oauth'>,
  granted: readonly string[] | undefined,
): readonly string[] {
  return granted ? oauth.scopes.filter((scope) => !granted.includes(scope)) : []
}
