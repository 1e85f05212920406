/**
 * Key in the database of a profile that has ever stored a secret in the keychain, so that the secret is found whatever store is
 * chosen later.
 */
export const KEYCHAIN_USED = 'keychain-used'
