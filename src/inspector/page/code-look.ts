import {
  closeSearchPanel,
  findNext,
  findPrevious,
  getSearchQuery,
  replaceAll,
  replaceNext,
  search,
  searchKeymap,
  SearchQuery,
  setSearchQuery,
} from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightSpecialChars,
  keymap,
  MatchDecorator,
  type Panel,
  ViewPlugin,
  type ViewUpdate,
} from '@codemirror/view'
import { HIDDEN, symbolOf } from './parts.js'

/**
 * Colours of the page. The style sheet sets them for light and dark, and custom properties reach into the shadow tree.
 */
const LOOK = EditorView.theme({
  '&': { fontSize: '0.8125rem', color: 'var(--text)', backgroundColor: 'var(--code)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-content': { padding: '0.5rem 0' },
  '.cm-line, .cm-deletedChunk .cm-deletedLine': { padding: '0 0.75rem 0 0.25rem' },
  '.cm-gutters': { backgroundColor: 'var(--code)', color: 'var(--faint)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { minWidth: '2rem', padding: '0 0.25rem 0 0.5rem' },
  '.cm-foldGutter .cm-gutterElement': { cursor: 'pointer', padding: '0 0.15rem', color: 'var(--quiet)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  // Not coloured, since the partner may just be further away than CodeMirror searches.
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--chosen)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--selection)',
  },
  '.cm-searchMatch': { backgroundColor: 'var(--wait-ground)', outline: '1px solid var(--wait)' },
  '.cm-searchMatch-selected': { backgroundColor: 'var(--chosen)', outline: '2px solid var(--accent)' },
  '.cm-foldPlaceholder': {
    margin: '0 0.25rem',
    padding: '0 0.4rem',
    border: '1px solid var(--line)',
    borderRadius: '0.3rem',
    backgroundColor: 'var(--panel)',
    color: 'var(--quiet)',
    fontFamily: 'var(--sans)',
    fontSize: '0.75rem',
    whiteSpace: 'nowrap',
  },
  '.cm-panels, .cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    fontFamily: 'var(--sans)',
  },
  '.cm-panels-top': { borderWidth: '0 0 1px' },
  '.find': { display: 'flex', flexWrap: 'wrap', gap: '0.35rem', padding: '0.4rem 0.5rem' },
  '.find input': { flex: '1 1 6rem', width: 'auto' },
  '.find :focus-visible': { outlineOffset: '-1px' },
  '.hidden-char': { padding: '0' },
  '.json-string': { color: 'var(--json-string)' },
  '.json-number': { color: 'var(--json-number)' },
  '.json-literal': { color: 'var(--json-literal)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-collapsedLines, .cm-collapsedLines:hover': {
    padding: '0.3rem 0.75rem',
    background: 'var(--hover)',
    color: 'var(--quiet)',
    fontFamily: 'var(--sans)',
    fontSize: '0.75rem',
  },
  // Replaced, since common fonts lack the original character.
  '.cm-collapsedLines:before, .cm-collapsedLines:after': { content: '"⋯" !important' },
  '.cm-changeGutter': { width: '3px', paddingLeft: '0' },
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { backgroundColor: 'var(--bad-ground)' },
  '&.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--ok-ground)' },
  '&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText': { background: 'var(--bad-word)' },
  '&.cm-merge-b .cm-changedText': { background: 'var(--ok-word)' },
  '&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter': { background: 'var(--bad)' },
  '&.cm-merge-b .cm-changedLineGutter': { background: 'var(--ok)' },
  '.cm-deletedChunk': { paddingLeft: '0' },
})

const INDENT = Decoration.mark({ class: 'json-indent' })
const STRING = Decoration.mark({ class: 'json-string' })
const NUMBER = Decoration.mark({ class: 'json-number' })
const LITERAL = Decoration.mark({ class: 'json-literal' })
/** End of a token with the comma or colon after it, where a line that must break somewhere does not break. */
const END = Decoration.mark({ class: 'json-end' })
const END_LENGTH = 3
/** Length up to which a text with hyphens, such as `"2026-01-31T12:00:00Z"`, is not broken. Characters. */
const WHOLE_LENGTH = 22

const tokens = new MatchDecorator({
  regexp: /^ +|("[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\d.eE+-]*|true|false|null|[\]}])(,| *:|)/g,
  decorate(add, from, to, [spaces, token, sign = '']) {
    if (token === undefined) {
      add(from, from, Decoration.line({ attributes: { style: `--indent: ${spaces.length}` } }))
      return add(from, to, INDENT)
    }
    const end = from + token.length
    const isString = token.startsWith('"')
    if (isString && !sign.endsWith(':')) add(from, end, STRING)
    else if (/^[tfn]/.test(token)) add(from, end, LITERAL)
    else if (/^[-\d]/.test(token)) add(from, end, NUMBER)
    const isWhole = token.length <= WHOLE_LENGTH && token.includes('-')
    add(isWhole ? from : Math.max(from, end - END_LENGTH), to, END)
  },
})

/**
 * Highlights JSON in the visible lines, since a parser does not reach the end of 10 MB. A value that does not fit in a
 * line continues on a new one, a little further right than its name.
 */
export const JSON_LOOK: Extension = [
  ViewPlugin.fromClass(
    class {
      decorations: DecorationSet
      constructor(view: EditorView) {
        this.decorations = tokens.createDeco(view)
      }
      update(update: ViewUpdate) {
        this.decorations = tokens.updateDeco(update, this.decorations)
      }
    },
    { decorations: ({ decorations }) => decorations },
  ),
  EditorView.theme({
    '.cm-content .cm-line, .cm-content .cm-deletedChunk .cm-deletedLine': {
      '--hang': 'calc(min(var(--indent, 2) * var(--space) * 1ch, 40vw) + 2ch)',
      paddingLeft: 'calc(var(--hang) + 0.25rem)',
      textIndent: 'calc(-1 * var(--hang))',
    },
    // One column shows removed lines without marks.
    '&.cm-merge-b': { '--space': '1' },
    '.json-indent, .json-end': { whiteSpace: 'pre' },
    '.json-indent': { letterSpacing: 'calc(var(--space) * 1ch - 1ch)' },
  }),
]

/** Extensions of every view: colours, visible symbols for invisible characters, and a search. */
export function base(label: string): Extension {
  return [
    LOOK,
    EditorView.lineWrapping,
    highlightSpecialChars({ specialChars: HIDDEN, render: symbol }),
    drawSelection(),
    search({ top: true, createPanel: findPanel }),
    keymap.of(searchKeymap),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
  ]
}

/** Extensions of a read-only view. Editable content would make a phone open its keyboard. */
export function reading(label: string): Extension {
  return [base(label), EditorState.readOnly.of(true), EditorView.editable.of(false)]
}

function symbol(code: number): HTMLElement {
  const element = document.createElement('span')
  element.className = 'hidden-char'
  element.textContent = symbolOf(String.fromCodePoint(code))
  return element
}

/**
 * A search panel for literal text, ignoring case. CodeMirror's own panel takes 2 seconds for 10 MB, since it normalizes
 * each character; an escaped regular expression takes 60 ms.
 */
function findPanel(view: EditorView): Panel {
  const dom = document.createElement('div')
  dom.className = 'find'
  const field = fieldOf('Find')
  field.setAttribute('main-field', 'true')
  const replacement = fieldOf('Replace with')
  const commit = (): void => {
    const query = new SearchQuery({
      search: field.value.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`),
      regexp: true,
      replace: replacement.value.replaceAll('$', '$$$$'),
    })
    if (!query.eq(getSearchQuery(view.state))) view.dispatch({ effects: setSearchQuery.of(query) })
  }
  const button = (text: string, run: (view: EditorView) => boolean): HTMLButtonElement => {
    const element = document.createElement('button')
    element.type = 'button'
    element.className = 'button'
    element.textContent = text
    element.addEventListener('click', () => run(view))
    return element
  }
  dom.append(field, button('Previous', findPrevious), button('Next', findNext))
  if (!view.state.readOnly)
    dom.append(replacement, button('Replace', replaceNext), button('Replace all', replaceAll))
  dom.append(button('Close', closeSearchPanel))
  dom.addEventListener('input', commit)
  dom.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.target === field) {
      ;(event.shiftKey ? findPrevious : findNext)(view)
      event.preventDefault()
    }
    for (const { key, run } of searchKeymap)
      if (key === 'Escape' && key === event.key && run?.(view)) event.preventDefault()
  })
  return {
    dom,
    top: true,
    mount() {
      const { search, regexp } = getSearchQuery(view.state)
      if (!regexp) field.value = search
      field.select()
      // Deferred, since the view is in the middle of an update.
      queueMicrotask(commit)
    },
  }
}

function fieldOf(label: string): HTMLInputElement {
  const field = document.createElement('input')
  field.type = 'search'
  field.placeholder = label
  field.setAttribute('aria-label', label)
  return field
}
