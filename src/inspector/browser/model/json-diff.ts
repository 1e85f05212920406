import { childrenOf, type JsonNode, type JsonTree, nameOf, pathName } from './json-tree.js'

/** One difference: `before` is missing where the value was added, `after` where it was removed. JSON text. */
export interface Change {
  readonly path: string
  readonly before?: string
  readonly after?: string
}

export interface Diff {
  readonly changes: readonly Change[]
  /** Whether there are more than {@link MAX_CHANGES}. */
  readonly isCut: boolean
}

/** More differences than a person reads; then the two have little in common. */
export const MAX_CHANGES = 2000

/** One side of a comparison. */
interface Side {
  readonly tree: JsonTree
  readonly node: JsonNode
}

/** How two JSON texts differ as values: members of objects by name whatever their order, elements of arrays by place. */
export function diffTrees(before: JsonTree, after: JsonTree): Diff {
  const changes: Change[] = []
  const [left, right] = [before.nodes[0], after.nodes[0]]
  if (left && right) compare({ tree: before, node: left }, { tree: after, node: right }, '', changes)
  const isCut = changes.length > MAX_CHANGES
  return { changes: changes.slice(0, MAX_CHANGES), isCut }
}

function compare(left: Side, right: Side, path: string, changes: Change[]): void {
  if (changes.length > MAX_CHANGES || textOf(left) === textOf(right)) return
  const kind = left.node.kind
  if (kind !== right.node.kind) changes.push(changed(path, left, right))
  else if (kind === 'object') compareObjects(left, right, path, changes)
  else if (kind === 'array') compareArrays(left, right, path, changes)
  else if (kind !== 'string' || parsed(left) !== parsed(right)) changes.push(changed(path, left, right))
}

function compareObjects(left: Side, right: Side, path: string, changes: Change[]): void {
  const [before, after] = [membersOf(left), membersOf(right)]
  for (const [name, member] of before) {
    const other = after.get(name)
    const memberPath = join(path, pathName(JSON.stringify(name)))
    if (other) compare(member, other, memberPath, changes)
    else changes.push({ path: memberPath, before: textOf(member) })
  }
  for (const [name, member] of after)
    if (!before.has(name))
      changes.push({ path: join(path, pathName(JSON.stringify(name))), after: textOf(member) })
}

/** Equal elements at both ends are left out first, so that one that was inserted does not move all that follow. */
function compareArrays(left: Side, right: Side, path: string, changes: Change[]): void {
  const [before, after] = [elementsOf(left), elementsOf(right)]
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && isSame(before[start], after[start])) start++
  let end = 0
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end++
  const [removed, added] = [before.slice(start, before.length - end), after.slice(start, after.length - end)]
  for (let i = 0; i < Math.max(removed.length, added.length); i++) {
    const [one, other] = [removed[i], added[i]]
    const elementPath = `${path}[${start + i}]`
    if (one && other) compare(one, other, elementPath, changes)
    else if (one) changes.push({ path: elementPath, before: textOf(one) })
    else if (other) changes.push({ path: elementPath, after: textOf(other) })
  }
}

function isSame(one: Side | undefined, other: Side | undefined): boolean {
  if (!one || !other) return false
  const found: Change[] = []
  compare(one, other, '', found)
  return found.length === 0
}

/** By name; of a name that is repeated the last counts, as in JSON.parse. */
function membersOf({ tree, node }: Side): ReadonlyMap<string, Side> {
  return new Map(
    elementsOf({ tree, node }).map((member) => [String(JSON.parse(nameOf(tree, member.node))), member]),
  )
}

function elementsOf({ tree, node }: Side): Side[] {
  return [...childrenOf(tree.nodes, node.index)].flatMap((index) => {
    const child = tree.nodes[index]
    return child ? [{ tree, node: child }] : []
  })
}

function changed(path: string, before: Side, after: Side): Change {
  return { path, before: textOf(before), after: textOf(after) }
}

function textOf({ tree, node }: Side): string {
  return tree.text.slice(node.start, node.end)
}

function parsed(side: Side): unknown {
  return JSON.parse(textOf(side))
}

function join(path: string, step: string): string {
  return path === '' ? step.replace(/^\./, '') : path + step
}
