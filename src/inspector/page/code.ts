import { defaultKeymap, history, historyKeymap, standardKeymap } from '@codemirror/commands'
import { json, jsonLanguage } from '@codemirror/lang-json'
import {
  bracketMatching,
  codeFolding,
  foldEffect,
  foldGutter,
  foldKeymap,
  foldService,
  foldState,
  indentOnInput,
  toggleFold,
  unfoldAll,
} from '@codemirror/language'
import { setDiagnostics } from '@codemirror/lint'
import {
  type Change,
  Chunk,
  goToNextChunk,
  goToPreviousChunk,
  MergeView,
  unifiedMergeView,
} from '@codemirror/merge'
import { openSearchPanel } from '@codemirror/search'
import { EditorState, type Extension, type StateEffect, Text } from '@codemirror/state'
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { base, JSON_LOOK, reading } from './code-look.js'
import { lineDiff } from './diff.js'
import { counted } from './format.js'
import { moveFocus } from './model.js'
import { HIDDEN, symbolOf } from './parts.js'
import { pathAt, pretty } from './pretty.js'

// All uses of CodeMirror, loaded with the first delivery. Each view is in its own shadow tree, because only there
// CodeMirror uses style sheet objects. Elsewhere it adds <style> elements, which the page's policy forbids.

export interface CodeView {
  find(): void
  destroy(): void
  /** Folds the members of a whole JSON value. */
  fold?(): void
  unfold?(): void
}

export interface CompareView extends CodeView {
  /** Number of places that differ. */
  readonly differences: number
  next(): void
  previous(): void
}

export interface Editor extends CodeView {
  text(): string
}

/** Position of a syntax error in JSON. Line and column begin with 1. */
export interface Problem {
  readonly message: string
  readonly line: number
  readonly column: number
}

/**
 * Length above which a line is folded to its start at first: one of 1 MB takes half a second to lay out. Characters.
 */
const MAX_SHOWN = 10_000
const START_SHOWN = 200
/** Length above which lines of raw text are shown in pieces: one line of 25 MB would take 17 seconds. Characters. */
const MAX_RAW = 2000
/**
 * Largest removed block for one column: `unifiedMergeView` draws it whole, which takes half a minute for a large one.
 * Lines.
 */
const MAX_UNIFIED = 2000
/** Maximum of parts folded at once: more takes seconds, and a person scrolls through fewer. */
const MAX_FOLDS = 10_000
/** Delay of the syntax check after the last key: parsing 1 MB takes 10 ms. Milliseconds. */
const CHECK_MS = 100
/** Length above which text is not parsed for the position of an error. Characters. */
const MAX_PARSED = 2_000_000

/**
 * Height of a view, which scrolls by itself: 25 MB would make the page 14 million pixels high, and the rest
 * unreachable.
 */
const MAX_HEIGHT = 'min(70vh, 60rem)'
const HEIGHT = EditorView.theme({ '&': { maxHeight: MAX_HEIGHT } })
const FOLD_MARKS = { openText: '▾', closedText: '▸' }

/**
 * Shows formatted JSON without a parser, which would not reach the end of 10 MB: coloured by pattern, folded by
 * brackets.
 */
export function showJson(into: HTMLElement, source: string, onPath: (path: string) => void): CodeView {
  const laid = pretty(source)
  const { text, pairs } = laid
  const view = open(into, text, [
    reading('Payload'),
    HEIGHT,
    lineNumbers(),
    foldGutter(FOLD_MARKS),
    foldService.of((_, from, to) => {
      const end = pairs.get(to - 1)
      return end === undefined || to <= from ? null : { from: to, to: end }
    }),
    folding(text),
    JSON_LOOK,
    keymap.of([{ key: 'Enter', run: toggleFold }, ...standardKeymap, ...foldKeymap]),
    EditorView.updateListener.of(({ selectionSet, state }) => {
      if (selectionSet) onPath(pathAt(laid, state.selection.main.head))
    }),
  ])
  const fold = (): void => {
    const effects: StateEffect<unknown>[] = []
    for (const [bracket, to] of pairs) {
      const lineStart = text.lastIndexOf('\n', bracket) + 1
      const isMember = lineStart > 0 && /^ {2}\S/.test(text.slice(lineStart, lineStart + 3))
      if (isMember && effects.length < MAX_FOLDS) effects.push(foldEffect.of({ from: bracket + 1, to }))
    }
    view.dispatch({ effects })
  }
  return { ...handlesOf(view), fold, unfold: () => void unfoldAll(view) }
}

/** Shows text, with long lines cut into pieces that can be laid out. */
export function showText(into: HTMLElement, text: string): CodeView {
  const pieces: string[] = []
  // Line numbers of the body. Only the first piece of a line has one.
  const numbers: string[] = []
  for (const [i, line] of text.split('\n').entries())
    for (let from = 0; from === 0 || from < line.length; from += MAX_RAW) {
      pieces.push(line.slice(from, from + MAX_RAW))
      numbers.push(from === 0 ? String(i + 1) : '')
    }
  const extensions = [
    reading('Payload'),
    HEIGHT,
    EditorView.theme({ '.cm-content .cm-line': { wordBreak: 'break-all' } }),
    lineNumbers({ formatNumber: (n) => numbers[n - 1] ?? '' }),
    keymap.of(standardKeymap),
  ]
  return handlesOf(open(into, Text.of(pieces), extensions))
}

/** Opens an editor for text, and for JSON if `isJson` says so of it. Tab leaves it, as it leaves any field. */
export function edit(
  into: HTMLElement,
  text: string,
  isJson: (text: string) => boolean,
  onProblem: (problem: Problem | null) => void,
): Editor {
  let timer: ReturnType<typeof setTimeout> | undefined
  const check = (): void => {
    const { state } = view
    const edited = state.doc.toString()
    const found = isJson(edited) ? findProblem(edited) : null
    const from = found?.at ?? 0
    const to = Math.min(from + 1, state.doc.length)
    view.dispatch(
      setDiagnostics(state, found ? [{ from, to, severity: 'error', message: found.message }] : []),
    )
    const line = state.doc.lineAt(from)
    onProblem(found && { message: found.message, line: line.number, column: from - line.from + 1 })
  }
  const view = open(into, text, [
    base(isJson(text) ? 'Payload as JSON' : 'Payload'),
    lineNumbers(),
    foldGutter(FOLD_MARKS),
    history(),
    indentOnInput(),
    bracketMatching(),
    highlightActiveLine(),
    json(),
    JSON_LOOK,
    EditorView.theme({ '&': { height: '100%' } }),
    keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap]),
    EditorView.updateListener.of(({ docChanged }) => {
      if (!docChanged) return
      clearTimeout(timer)
      timer = setTimeout(check, CHECK_MS)
    }),
  ])
  moveFocus(view.contentDOM)
  const destroy = (): void => {
    clearTimeout(timer)
    view.destroy()
  }
  return { ...handlesOf(view), text: () => view.state.doc.toString(), destroy }
}

export interface CompareOptions {
  readonly label: string
  /** Shows one column instead of two. */
  readonly isNarrow: boolean
  /** Shows equal parts and the whole of long lines, too. */
  readonly isWhole: boolean
  readonly isJson: boolean
}

/** Shows two texts side by side, or in one column, with their equal parts folded. */
export function compare(into: HTMLElement, texts: readonly string[], options: CompareOptions): CompareView {
  const { label, isNarrow, isWhole, isJson } = options
  // Replaced by symbols, since the widget for removed text does not handle special characters.
  const [before = '', after = ''] = texts.map((text) =>
    text.replaceAll(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : symbolOf(char))),
  )
  const changes = lineDiff(before, after)
  const settings = {
    // Computed once, since the texts are never edited.
    diffConfig: { override: (): readonly Change[] => changes },
    ...(!isWhole && { collapseUnchanged: { margin: 3, minSize: 6 } }),
  }
  const side = (doc: string, name: string): { doc: string; extensions: Extension[] } => ({
    doc,
    extensions: [
      reading(name),
      lineNumbers(),
      isJson ? JSON_LOOK : [],
      isWhole ? [] : folding(doc),
      keymap.of([{ key: 'Enter', run: toggleFold }, ...standardKeymap]),
    ],
  })
  const handles = (view: EditorView): CompareView => ({
    ...handlesOf(view),
    differences: Chunk.build(linesOf(before), linesOf(after), settings.diffConfig).length,
    next: () => void goToNextChunk(view),
    previous: () => void goToPreviousChunk(view),
  })
  const lineCounts = changes.map(({ fromA, toA }) => before.slice(fromA, toA).split('\n').length)
  if (isNarrow && lineCounts.every((count) => count <= MAX_UNIFIED)) {
    // Non-breaking spaces, since removed lines have no marks that prevent a break after the indentation.
    const original = before.replaceAll(/^ +/gm, (spaces) => '\u{a0}'.repeat(spaces.length))
    const merge = unifiedMergeView({ original, mergeControls: false, ...settings })
    const { extensions } = side(after, label)
    return handles(open(into, after, [extensions, merge, HEIGHT]))
  }
  const root = rootOf(into)
  const [a, b] = [side(before, `${label}, before`), side(after, `${label}, after`)]
  const merged = new MergeView({ parent: root, root, a, b, ...settings })
  merged.dom.style.maxHeight = MAX_HEIGHT
  return { ...handles(merged.b), destroy: () => merged.destroy() }
}

function open(into: HTMLElement, doc: string | Text, extensions: Extension): EditorView {
  const root = rootOf(into)
  return new EditorView({ parent: root, root, doc, extensions })
}

/** The page's own style sheet, for the shadow trees. */
const STYLE = new CSSStyleSheet()
STYLE.replaceSync(
  [...document.styleSheets].flatMap(({ cssRules }) => [...cssRules].map(({ cssText }) => cssText)).join('\n'),
)

function rootOf(element: HTMLElement): ShadowRoot {
  if (element.shadowRoot) return element.shadowRoot
  const root = element.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [STYLE]
  return root
}

function handlesOf(view: EditorView): CodeView {
  return { find: () => void openSearchPanel(view), destroy: () => view.destroy() }
}

function linesOf(text: string): Text {
  return Text.of(text.split('\n'))
}

const FOLDING = codeFolding({
  preparePlaceholder: ({ doc }, { from, to }) => {
    const lines = doc.lineAt(to).number - doc.lineAt(from).number
    return lines === 0 ? counted(to - from, 'more character') : counted(lines - 1, 'line')
  },
  placeholderDOM: (_, onclick, hidden: string) => {
    const element = document.createElement('span')
    element.className = 'cm-foldPlaceholder'
    element.textContent = `… ${hidden}`
    element.title = 'Unfold'
    element.addEventListener('click', onclick)
    return element
  },
})

/** Folds long lines in the view's first state: folding them later costs as much as showing them. */
function folding(text: string): Extension {
  const effects: StateEffect<unknown>[] = []
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from)
    const to = end === -1 ? text.length : end
    if (to - from > MAX_SHOWN) effects.push(foldEffect.of({ from: from + START_SHOWN, to }))
    from = to + 1
  }
  if (effects.length === 0) return FOLDING
  const folded = EditorState.create({ doc: text, extensions: FOLDING }).update({ effects }).state
  return [FOLDING, foldState.init(() => folded.field(foldState))]
}

/**
 * Finds the first syntax error of JSON. The message is the browser's. V8 gives no position for some errors; Lezer's
 * first error is at the same place.
 */
function findProblem(text: string): { readonly message: string; readonly at: number } | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    const [, position] = / at position (\d+)/.exec(said) ?? []
    const message = said.replace(/(?:(?: in JSON)? at position .*|, .*is not valid JSON)$/s, '')
    return { message, at: position === undefined ? firstError(text) : Number(position) }
  }
}

function firstError(text: string): number {
  let at = text.length
  if (text.length > MAX_PARSED) return at
  jsonLanguage.parser.parse(text).iterate({
    enter({ type, from }) {
      if (type.isError) at = Math.min(at, from)
    },
  })
  return at
}
