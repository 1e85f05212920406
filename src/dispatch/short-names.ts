import { labelOf, type Route } from './route.js'

export type NamedTarget = Pick<Route, 'id' | 'name'>

/**
 * A short name for each target, by its id: the one that its route gives, else an address's host and port or the first word of
 * a command. Targets that would share a name get the rest of the address or command too, then their match.
 */
export function shortNames(targets: readonly NamedTarget[]): ReadonlyMap<string, string> {
  const candidates = new Map<string, readonly string[]>()
  for (const { id, name } of targets)
    if (name !== undefined || !candidates.has(id))
      candidates.set(id, name === undefined ? namesOf(id) : [name])
  const all = [...candidates.values()]
  return new Map(
    [...candidates].map(([id, names]) => {
      const unique = names.find((one) => all.filter((others) => others.includes(one)).length === 1)
      return [id, unique ?? names.at(-1) ?? id]
    }),
  )
}

/** Names of a target that are possible, the shortest first. */
function namesOf(id: string): readonly string[] {
  const label = labelOf(id)
  const target = label.replace(/^[^=/]*=(?=exec:|https?:)/, '')
  if (target.startsWith('exec:')) {
    const command = target.slice('exec:'.length)
    const word = command.split(' ').find((part) => !/^\w+=/.test(part)) ?? command
    return [word.split('/').at(-1) || word, command, label]
  }
  const address = target.replace(/^https?:\/\/(?:\*\*\*@)?/, '')
  return [address.replace(/[/?].*$/s, ''), address, label]
}
