import { cyan, dim, green, type Line, yellow } from './line.js'

/** A string with its colon, a string, a number or literal; what is left is punctuation and white space. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|([-\d.eE+]+|true|false|null)|([^"\w-]+)/g

/** Pretty-printed JSON in colours, line by line. Its text is not changed. */
export function jsonLines(json: string): Line[] {
  return json.split('\n').map((line) => [...line.matchAll(TOKEN)].map(painted))
}

function painted([whole, text, colon, scalar]: RegExpMatchArray): Line {
  if (text !== undefined) return colon === undefined ? green(text) : [cyan(text), dim(colon)]
  return scalar === undefined ? dim(whole) : yellow(scalar)
}
