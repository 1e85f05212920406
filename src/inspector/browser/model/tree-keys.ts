import type { JsonTree } from './json-tree.js'

/** What a key does in a tree: fold or unfold a node, or move to another. */
export type TreeStep = { readonly toggle: number } | { readonly cursor: number }

/** Rows that Page Up and Page Down move by. */
const PAGE_ROWS = 20

/**
 * The step of a key, as the ARIA tree pattern has it; undefined for one that means nothing here. `shown` are the indexes of the
 * nodes in view, in order.
 * @see https://www.w3.org/WAI/ARIA/apg/patterns/treeview/
 */
export function moveInTree(
  { nodes }: JsonTree,
  open: ReadonlySet<number>,
  shown: readonly number[],
  cursor: number,
  key: string,
): TreeStep | undefined {
  const node = nodes[cursor]
  if (!node) return undefined
  const row = shown.indexOf(cursor)
  const isOpen = open.has(cursor)
  const to = (target: number): TreeStep => ({
    cursor: shown[Math.min(Math.max(target, 0), shown.length - 1)] ?? cursor,
  })
  switch (key) {
    case 'ArrowDown':
      return to(row + 1)
    case 'ArrowUp':
      return to(row - 1)
    case 'PageDown':
      return to(row + PAGE_ROWS)
    case 'PageUp':
      return to(row - PAGE_ROWS)
    case 'Home':
      return to(0)
    case 'End':
      return to(shown.length - 1)
    case 'ArrowRight':
      if (node.size === 0) return { cursor }
      return isOpen ? to(row + 1) : { toggle: cursor }
    case 'ArrowLeft':
      if (isOpen) return { toggle: cursor }
      return { cursor: Math.max(node.parent, 0) }
    case 'Enter':
    case ' ':
      return node.size > 0 ? { toggle: cursor } : { cursor }
    default:
      return undefined
  }
}
