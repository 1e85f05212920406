const START = Buffer.from('{"id":')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const BRACKET = 0x5b
const BRACE = 0x7b
/** Flat: an id (that of a deleted user is -1), a login, and at the end the login once more. */
const USER = /^\{"id":-?\d+,"login":"([^"\\]+)",.*"username":"\1"\}$/s

/**
 * The index past a user object of Gitea; undefined for any other object. Gitea 1.15 writes users compact inside indented text:
 * User has a MarshalJSON of its own, and json-iterator copies its result. Users are the only objects of this shape.
 * @see modules/structs/user.go in go-gitea/gitea, v1.15
 */
export function endOfGiteaUser(json: Buffer, start: number): number | undefined {
  if (!json.subarray(start, start + START.length).equals(START)) return undefined
  for (let at = start + 1; at < json.length; at++) {
    const byte = json[at]
    if (byte === BRACE || byte === BRACKET) return undefined
    if (byte === QUOTE) at = endOfString(json, at)
    else if (byte === BRACE + 2) return USER.test(json.toString('utf8', start, at + 1)) ? at + 1 : undefined
  }
  return undefined
}

/** Whether JSON text without white space has such an object. */
export function hasGiteaUser(json: Buffer): boolean {
  let start = json.indexOf(START)
  while (start !== -1 && endOfGiteaUser(json, start) === undefined) start = json.indexOf(START, start + 1)
  return start !== -1
}

/** The index of the closing quote of the string that begins at `start`. */
function endOfString(json: Buffer, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
