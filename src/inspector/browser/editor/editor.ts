import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

export interface Editor {
  text(): string
  destroy(): void
}

/** The same colours as the tree; the style sheet gives them for light and dark. */
const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--json-name)' },
  { tag: tags.string, color: 'var(--json-string)' },
  { tag: tags.number, color: 'var(--json-number)' },
  { tag: [tags.bool, tags.null], color: 'var(--json-literal)' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

const LOOK = EditorView.theme({
  '&': { height: '100%', fontSize: 'inherit', color: 'var(--text)', backgroundColor: 'var(--code)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': { backgroundColor: 'var(--code)', color: 'var(--quiet)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  // Also one whose partner is further away than is looked for. The linter marks those that have none.
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'transparent' },
  '&.cm-focused': { outline: 'none' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--chosen)',
  },
  '.cm-panels, .cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    borderColor: 'var(--line)',
  },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--hover)', color: 'var(--quiet)', border: 'none' },
})

/**
 * Opens a JSON editor in an element, and gives it the focus. Tab leaves it, as it leaves any field. It is in a shadow tree, because
 * only there CodeMirror uses style sheet objects (`adoptedStyleSheets`); elsewhere it adds `<style>` elements, which the page's
 * policy forbids.
 */
export function createEditor(parent: HTMLElement, text: string): Editor {
  const extensions = [
    lineNumbers(),
    foldGutter(),
    lintGutter(),
    history(),
    drawSelection(),
    highlightSpecialChars(),
    indentOnInput(),
    bracketMatching(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    json(),
    linter(jsonParseLinter()),
    syntaxHighlighting(COLOURS),
    LOOK,
    EditorView.contentAttributes.of({ 'aria-label': 'Payload as JSON', tabindex: '0' }),
    keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
  ]
  const root = parent.attachShadow({ mode: 'open' })
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) })
  view.focus()
  return { text: () => view.state.doc.toString(), destroy: () => view.destroy() }
}
