import { tokens } from '../../../json/text.js'

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'literal'

/** A value in JSON text. It refers to the text by position, so that nothing of how it is written is lost. */
export interface JsonNode {
  readonly index: number
  readonly depth: number
  readonly kind: JsonKind
  /** The index of the array or object around it; -1 for the root. */
  readonly parent: number
  /** Its name with quotes, as positions in the text; equal where it has none. */
  readonly nameStart: number
  readonly nameEnd: number
  /** Its place in its array; -1 elsewhere. */
  readonly place: number
  readonly start: number
  end: number
  /** How many values it contains itself. */
  size: number
  /** The index of the first node after it that is not inside it. */
  after: number
}

export interface JsonTree {
  readonly text: string
  /** In the order of the text; the root is the first. */
  readonly nodes: readonly JsonNode[]
}

/**
 * The values in valid JSON text, as a flat list.
 * @throws RangeError for more than 1,000 nested arrays and objects.
 */
export function parseTree(text: string): JsonTree {
  const nodes: JsonNode[] = []
  const open: JsonNode[] = []
  let name: { readonly start: number; readonly end: number } | undefined
  for (const { start, end } of tokens(text)) {
    const first = text.charAt(start)
    if (first === ':' || first === ',') continue
    const parent = open.at(-1)
    if (first === '}' || first === ']') {
      close(open.pop(), end, nodes.length)
    } else if (parent?.kind === 'object' && !name) {
      name = { start, end }
    } else {
      const node = nodeOf(nodes.length, kindOf(first), { start, end }, name, parent)
      nodes.push(node)
      if (parent) parent.size++
      name = undefined
      if (node.kind === 'object' || node.kind === 'array') open.push(node)
    }
  }
  return { text, nodes }
}

interface Place {
  readonly start: number
  readonly end: number
}

function nodeOf(
  index: number,
  kind: JsonKind,
  { start, end }: Place,
  name: Place | undefined,
  parent: JsonNode | undefined,
): JsonNode {
  return {
    index,
    kind,
    depth: parent ? parent.depth + 1 : 0,
    parent: parent?.index ?? -1,
    nameStart: name?.start ?? 0,
    nameEnd: name?.end ?? 0,
    place: parent?.kind === 'array' ? parent.size : -1,
    start,
    end,
    size: 0,
    after: index + 1,
  }
}

function close(node: JsonNode | undefined, end: number, after: number): void {
  if (!node) return
  node.end = end
  node.after = after
}

function kindOf(first: string): JsonKind {
  if (first === '{') return 'object'
  if (first === '[') return 'array'
  if (first === '"') return 'string'
  return first === '-' || (first >= '0' && first <= '9') ? 'number' : 'literal'
}

/** The name of a node with its quotes, its place in an array, or nothing for the root. */
export function nameOf({ text }: JsonTree, node: JsonNode): string {
  return node.place >= 0 ? String(node.place) : text.slice(node.nameStart, node.nameEnd)
}

/** The path of a node: `pull_request.labels[0].name`; names that are no identifiers are quoted; empty for the root. */
export function pathOf(tree: JsonTree, node: JsonNode): string {
  const parts: string[] = []
  for (let each: JsonNode | undefined = node; each && each.parent >= 0; each = tree.nodes[each.parent])
    parts.push(each.place >= 0 ? `[${each.place}]` : pathName(nameOf(tree, each)))
  return parts.toReversed().join('').replace(/^\./, '')
}

/** One step of a path, from a name with its quotes. */
export function pathName(quoted: string): string {
  const name = quoted.slice(1, -1)
  return /^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${quoted}]`
}

/** The indexes of the nodes that are shown while those in `open` are unfolded. */
export function visibleNodes({ nodes }: JsonTree, open: ReadonlySet<number>): number[] {
  const shown: number[] = []
  for (let index = 0; index < nodes.length;) {
    shown.push(index)
    index = open.has(index) ? index + 1 : (nodes[index]?.after ?? nodes.length)
  }
  return shown
}

/** What to unfold at first: level by level, as long as no more than `rows` rows are shown. */
export function initiallyOpen({ nodes }: JsonTree, rows: number): ReadonlySet<number> {
  const open = new Set<number>()
  let shown = 1
  const queue = [0]
  for (let index = queue.shift(); index !== undefined; index = queue.shift()) {
    const node = nodes[index]
    if (!node || node.size === 0 || shown + node.size > rows) continue
    open.add(index)
    shown += node.size
    queue.push(...childrenOf(nodes, index))
  }
  return open.size === 0 && nodes.length > 1 ? new Set([0]) : open
}

/** The indexes of what an array or object contains itself. */
export function* childrenOf(nodes: readonly JsonNode[], index: number): Generator<number> {
  const end = nodes[index]?.after ?? 0
  for (let child = index + 1; child < end; child = nodes[child]?.after ?? end) yield child
}

/** All that can be unfolded. */
export function allOpen({ nodes }: JsonTree): ReadonlySet<number> {
  return new Set(nodes.flatMap(({ index, size }) => (size > 0 ? [index] : [])))
}
