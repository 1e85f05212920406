import { useMemo, useState } from 'hono/jsx/dom'
import { counted, formatCount } from '../../view/format.js'
import { Icon } from '../../view/icon.js'
import { Visible } from '../../view/visible.js'
import {
  allOpen,
  initiallyOpen,
  type JsonNode,
  type JsonTree,
  nameOf,
  pathOf,
  visibleNodes,
} from '../model/json-tree.js'
import { moveInTree } from '../model/tree-keys.js'
import { copy } from '../ui/copy.js'
import { VirtualRows } from '../ui/virtual-rows.js'

/** Rows shown at first: what is below the payload stays within reach. */
const FIRST_ROWS = 28

/** Of a longer string the start is shown; the raw view has all of it. Characters. */
const MAX_VALUE = 400

/** JSON as a tree that folds. One row has the keyboard; arrow keys move, fold and unfold as in any tree. */
export function TreeView({ tree }: { readonly tree: JsonTree }) {
  const [open, setOpen] = useState(() => initiallyOpen(tree, FIRST_ROWS))
  const [cursor, setCursor] = useState(0)
  const [handle] = useState<{ scrollTo?: (index: number) => void }>({})
  const shown = useMemo(() => visibleNodes(tree, open), [tree, open])
  const toggle = (index: number): void => {
    const next = new Set(open)
    if (!next.delete(index)) next.add(index)
    setOpen(next)
    setCursor(index)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const step = moveInTree(tree, open, shown, cursor, event.key)
    if (!step) return
    event.preventDefault()
    event.stopPropagation()
    if ('toggle' in step) return toggle(step.toggle)
    setCursor(step.cursor)
    handle.scrollTo?.(shown.indexOf(step.cursor))
  }
  return (
    <>
      <TreeTools tree={tree} cursor={cursor} onOpen={setOpen} />
      <div class="code tree-box">
        <VirtualRows
          class="tree"
          count={shown.length}
          handle={handle}
          attributes={{
            role: 'tree',
            tabindex: 0,
            'aria-labelledby': 'payload-title',
            'aria-activedescendant': `node-${cursor}`,
            ...handlers(onKeyDown, (index) => (tree.nodes[index]?.size ? toggle(index) : setCursor(index))),
          }}
          row={(row) => {
            const node = tree.nodes[shown[row] ?? -1]
            return node ? (
              <TreeRow
                key={node.index}
                tree={tree}
                node={node}
                isOpen={open.has(node.index)}
                isCurrent={node.index === cursor}
              />
            ) : null
          }}
        />
      </div>
    </>
  )
}

/** One listener for all rows, which come and go while the tree scrolls. */
function handlers(onKeyDown: (event: KeyboardEvent) => void, onRow: (index: number) => void): object {
  return {
    onKeyDown,
    onClick: (event: MouseEvent) => {
      // A click that ends a selection is no click on a row.
      if (!(event.target instanceof Element) || getSelection()?.isCollapsed === false) return
      const row = event.target.closest<HTMLElement>('[data-node]')
      if (row) onRow(Number(row.dataset['node']))
    },
  }
}

interface ToolsProps {
  readonly tree: JsonTree
  readonly cursor: number
  readonly onOpen: (open: ReadonlySet<number>) => void
}

function TreeTools({ tree, cursor, onOpen }: ToolsProps) {
  const node = tree.nodes[cursor]
  const path = node ? pathOf(tree, node) : ''
  return (
    <div class="tree-tools">
      <code class="tree-path" title={path}>
        {path === '' ? `${formatCount(tree.nodes.length)} values` : <Visible text={path} />}
      </code>
      {path === '' ? null : (
        <button type="button" class="link" onClick={() => void copy('the path', Promise.resolve(path))}>
          Copy path
        </button>
      )}
      <button type="button" class="link" onClick={() => onOpen(allOpen(tree))}>
        Unfold all
      </button>
      <button type="button" class="link" onClick={() => onOpen(new Set([0]))}>
        Fold
      </button>
    </div>
  )
}

interface TreeRowProps {
  readonly tree: JsonTree
  readonly node: JsonNode
  readonly isOpen: boolean
  readonly isCurrent: boolean
}

function TreeRow({ tree, node, isOpen, isCurrent }: TreeRowProps) {
  const { index, depth, size } = node
  return (
    <div
      class={isCurrent ? 'tree-row tree-current' : 'tree-row'}
      id={`node-${index}`}
      data-node={index}
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={isCurrent ? 'true' : 'false'}
      {...(size > 0 && { 'aria-expanded': isOpen ? 'true' : 'false' })}
      style={{ 'padding-left': `${Math.min(depth, MAX_INDENT) * 1.1 + 0.4}rem` }}
    >
      <span class={isOpen ? 'tree-fold tree-open' : 'tree-fold'}>
        {size > 0 ? <Icon name="forward" /> : null}
      </span>
      <Name tree={tree} node={node} />
      <Value tree={tree} node={node} isOpen={isOpen} />
    </div>
  )
}

/** Deeper values are not moved further to the right. */
const MAX_INDENT = 40

function Name({ tree, node }: { readonly tree: JsonTree; readonly node: JsonNode }) {
  const name = nameOf(tree, node)
  if (name === '') return null
  return (
    <span class={node.place >= 0 ? 'tree-place' : 'tree-name'}>
      <Visible text={node.place >= 0 ? name : name.slice(1, -1)} />
      {': '}
    </span>
  )
}

interface ValueProps {
  readonly tree: JsonTree
  readonly node: JsonNode
  readonly isOpen: boolean
}

function Value({ tree: { text }, node: { kind, start, end, size }, isOpen }: ValueProps) {
  if (kind === 'object' || kind === 'array') {
    const brackets = kind === 'object' ? '{}' : '[]'
    if (size === 0) return <span class="tree-brackets">{brackets}</span>
    const inside = counted(size, kind === 'object' ? 'field' : 'element')
    return (
      <span class="tree-brackets">{isOpen ? brackets[0] : `${brackets[0]}…${brackets[1]} ${inside}`}</span>
    )
  }
  const more = end - start - MAX_VALUE
  return (
    <span class={`tree-${kind}`}>
      <Visible text={text.slice(start, Math.min(end, start + MAX_VALUE))} />
      {more > 0 ? <span class="tree-more">… {counted(more, 'more character')}</span> : null}
    </span>
  )
}
