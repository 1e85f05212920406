import { readFileSync } from 'node:fs'

/** The members of an interface or a class in the published types. */
export function membersOf(file: string, name: string): string[] {
  const types = readFileSync(`dist/src/${file}`, 'utf8')
  const [, body = ''] = new RegExp(`(?:interface|class) ${name}\\b[^{]*\\{\\n([^]*?)\\n\\}`).exec(types) ?? []
  const members = [...body.matchAll(/^ {4}(?:readonly )?(\w+)\??[:(]/gm)].map(([, member = '']) => member)
  if (members.length === 0) throw new Error(`${name} of ${file} has no members`)
  return members
}
