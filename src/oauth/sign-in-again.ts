import { RelayError } from '../base/errors.js'

/** Only signing in helps. */
export function signInAgain(why: string): RelayError {
  return new RelayError('unauthenticated', `${why}; sign in again: relay login`)
}
