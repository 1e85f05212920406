import { defaultKeymap, history, historyKeymap, standardKeymap } from '@codemirror/commands'
import { json, jsonLanguage } from '@codemirror/lang-json'
import {
  bracketMatching,
  codeFolding,
  foldEffect,
  foldGutter,
  foldKeymap,
  foldService,
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
import {
  EditorState,
  type Extension,
  Facet,
  type Range,
  StateEffect,
  StateField,
  Text,
} from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  WidgetType,
} from '@codemirror/view'
import { base, JSON_LOOK, reading, shadowOf } from './code-base.js'
import { lineDiff } from './diff.js'
import { counted } from './format.js'
import { moveFocus } from './model.js'
import { HIDDEN, symbolOf } from './parts.js'
import { pathAt, pretty, type Pretty } from './pretty.js'

// All that CodeMirror does here, loaded with the first delivery. Each view is in a shadow tree of its own, because only there
// CodeMirror uses style sheet objects; elsewhere it adds <style> elements, which the page's policy forbids.

export interface CodeView {
  find(): void
  destroy(): void
}

export interface JsonView extends CodeView {
  /** Folds all that is in the members of the whole value. */
  fold(): void
  unfold(): void
}

export interface CompareView extends CodeView {
  /** How many places differ. */
  readonly differences: number
  next(): void
  previous(): void
}

export interface Editor extends CodeView {
  text(): string
}

/** Where a text is no JSON. Line and column begin with 1. */
export interface Problem {
  readonly message: string
  readonly line: number
  readonly column: number
}

/** Of a longer line only the start is shown at first: one of 1 MB takes half a second to lay out. Characters. */
const MAX_SHOWN = 10_000
const START_SHOWN = 200
/** Longer lines of raw text are shown in pieces: one line of 25 MB would take 17 seconds. Characters. */
const MAX_RAW = 2000
/** `unifiedMergeView` draws a removed block whole, which takes half a minute for a large one. Lines. */
const MAX_UNIFIED = 2000

/** Laid out JSON without a parser, which would not reach the end of 10 MB: colours by pattern, folds by the brackets. */
export function showJson(into: HTMLElement, text: string, onPath: (path: string) => void): JsonView {
  const laid = pretty(text)
  const onMove = EditorView.updateListener.of(({ selectionSet, state }) => {
    if (selectionSet) onPath(pathAt(laid, state.selection.main.head))
  })
  const toggle = (view: EditorView): boolean => showLine(view) || toggleFold(view)
  const extensions = [
    reading('Payload'),
    HEIGHT,
    lineNumbers(),
    foldGutter(FOLD_MARKS),
    FOLDS,
    foldService.of((_, from, to) => rangeOf(laid, to - 1, from)),
    longLines(laid.text),
    JSON_LOOK,
    keymap.of([{ key: 'Enter', run: toggle }, ...standardKeymap, ...foldKeymap]),
    onMove,
  ]
  const root = shadowOf(into)
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({ doc: laid.text, extensions }),
  })
  return {
    ...handlesOf(view),
    fold: () => view.dispatch({ effects: membersOf(laid) }),
    unfold() {
      unfoldAll(view)
      view.dispatch({ effects: showWhole.of(null) })
    },
  }
}

/** Text in lines that are short enough to be laid out. */
export function showText(into: HTMLElement, text: string): CodeView {
  const pieces: string[] = []
  // Only the first piece of a line has its number, as the body has it.
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
  const root = shadowOf(into)
  const state = EditorState.create({ doc: Text.of(pieces), extensions })
  return handlesOf(new EditorView({ parent: root, root, state }))
}

/** Its own scroller: 25 MB would make the page 14 million pixels high, and what follows unreachable. */
const MAX_HEIGHT = 'min(70vh, 60rem)'
const HEIGHT = EditorView.theme({ '&': { maxHeight: MAX_HEIGHT } })

const FOLD_MARKS = { openText: '▾', closedText: '▸' }

const FOLDS = codeFolding({
  preparePlaceholder: (state, { from, to }) =>
    counted(state.doc.lineAt(to).number - state.doc.lineAt(from).number - 1, 'line'),
  placeholderDOM(_, onclick, lines: string) {
    const element = document.createElement('span')
    element.className = 'cm-foldPlaceholder'
    element.textContent = `… ${lines}`
    element.title = 'Unfold'
    element.addEventListener('click', onclick)
    return element
  },
})

/** What is between a bracket and its partner, if it opens something in the line that begins at `lineStart`. */
function rangeOf({ pairs }: Pretty, bracket: number, lineStart: number) {
  const to = pairs.get(bracket)
  return to === undefined || bracket < lineStart ? null : { from: bracket + 1, to }
}

/** Folding more takes seconds; a person scrolls through fewer. */
const MAX_FOLDS = 10_000

function membersOf(laid: Pretty): StateEffect<unknown>[] {
  const effects: StateEffect<unknown>[] = []
  for (const [bracket, to] of laid.pairs) {
    if (effects.length >= MAX_FOLDS) break
    const lineStart = laid.text.lastIndexOf('\n', bracket) + 1
    const isMember = lineStart > 0 && /^ {2}\S/.test(laid.text.slice(lineStart, lineStart + 3))
    if (isMember) effects.push(foldEffect.of({ from: bracket + 1, to }))
  }
  return effects
}

/** Shows the whole of a long line, by the place where it is cut; null for all of them. */
const showWhole = StateEffect.define<number | null>()

/** Cuts long lines in the view's first state: to fold them later costs as much as showing them. */
function longLines(text: string): Extension {
  const cuts: Range<Decoration>[] = []
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from)
    const to = end === -1 ? text.length : end
    if (to - from > MAX_SHOWN)
      cuts.push(
        Decoration.replace({ widget: new More(to - from - START_SHOWN) }).range(from + START_SHOWN, to),
      )
    from = to + 1
  }
  if (cuts.length === 0) return []
  return StateField.define<DecorationSet>({
    create: () => Decoration.set(cuts),
    update: (shown, { effects }) =>
      effects
        .filter((effect) => effect.is(showWhole))
        .reduce(
          (left, { value }) => left.update({ filter: (from) => value !== null && from !== value }),
          shown,
        ),
    provide: (field) => [CUTS.from(field), EditorView.decorations.from(field)],
  })
}

const CUTS = Facet.define<DecorationSet>()

/** Shows the whole of the line that the cursor is in, if it is cut. */
function showLine(view: EditorView): boolean {
  const { from, to } = view.state.doc.lineAt(view.state.selection.main.head)
  let cut: number | undefined
  for (const cuts of view.state.facet(CUTS)) cuts.between(from, to, (at) => void (cut = at))
  if (cut !== undefined) view.dispatch({ effects: showWhole.of(cut) })
  return cut !== undefined
}

class More extends WidgetType {
  readonly #count: number

  constructor(count: number) {
    super()
    this.#count = count
  }

  override toDOM(view: EditorView): HTMLElement {
    const element = document.createElement('span')
    element.className = 'cm-foldPlaceholder'
    element.textContent = `… ${counted(this.#count, 'more character')}`
    element.title = 'Show all of it'
    element.addEventListener('click', () => view.dispatch({ effects: showWhole.of(view.posAtDOM(element)) }))
    return element
  }
}

/** JSON to be edited. Tab leaves it, as it leaves any field. */
export function edit(into: HTMLElement, text: string, onProblem: (problem: Problem | null) => void): Editor {
  let timer: ReturnType<typeof setTimeout> | undefined
  const check = (): void => {
    const found = findProblem(view.state.doc.toString())
    const at = found?.at ?? 0
    const { number, from } = view.state.doc.lineAt(at)
    const to = Math.min(at + 1, view.state.doc.length)
    view.dispatch(
      setDiagnostics(view.state, found ? [{ from: at, to, severity: 'error', message: found.message }] : []),
    )
    onProblem(found ? { message: found.message, line: number, column: at - from + 1 } : null)
  }
  const extensions = [
    base('Payload as JSON'),
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
  ]
  const root = shadowOf(into)
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) })
  moveFocus(view.contentDOM)
  return {
    ...handlesOf(view),
    text: () => view.state.doc.toString(),
    destroy() {
      clearTimeout(timer)
      view.destroy()
    },
  }
}

/** After the last key: parsing 1 MB takes 10 ms. */
const CHECK_MS = 100

/** Longer text is not parsed for the place of an error: characters. */
const MAX_PARSED = 2_000_000

/** Why a text is no JSON, in the browser's words, and where: V8 gives no place for some errors, and Lezer's first error is there. */
export function findProblem(text: string): { readonly message: string; readonly at: number } | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    const [, position] = / at position (\d+)/.exec(said) ?? []
    const message = said.replace(/(?: in JSON at position .*|, .*is not valid JSON)$/s, '')
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

export interface CompareOptions {
  readonly label: string
  /** One column instead of two. */
  readonly isNarrow: boolean
  /** Whether equal parts and the whole of long lines are shown too. */
  readonly isWhole: boolean
  readonly isJson: boolean
}

/** Two texts next to each other, with their equal parts folded away. */
export function compare(
  into: HTMLElement,
  before: string,
  after: string,
  options: CompareOptions,
): CompareView {
  // What is removed is shown by a widget that knows nothing of special characters.
  return compareVisible(into, visible(before), visible(after), options)
}

function visible(text: string): string {
  return text.replaceAll(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : symbolOf(char)))
}

function compareVisible(
  into: HTMLElement,
  before: string,
  after: string,
  { label, isNarrow, isWhole, isJson }: CompareOptions,
): CompareView {
  const changes = lineDiff(before, after)
  const isUnified =
    isNarrow && changes.every(({ fromA, toA }) => before.slice(fromA, toA).split('\n').length <= MAX_UNIFIED)
  const settings = {
    // The texts are never edited, so that this is asked for once.
    diffConfig: { override: (): readonly Change[] => changes },
    ...(!isWhole && { collapseUnchanged: { margin: 3, minSize: 6 } }),
  }
  const side = (doc: string, name: string, more: Extension = []) => ({
    doc,
    extensions: [
      reading(name),
      lineNumbers(),
      isJson ? JSON_LOOK : [],
      isWhole ? [] : longLines(doc),
      keymap.of([{ key: 'Enter', run: showLine }, ...standardKeymap]),
      more,
    ],
  })
  const root = shadowOf(into)
  const found = {
    differences: Chunk.build(Text.of(before.split('\n')), Text.of(after.split('\n')), settings.diffConfig)
      .length,
  }
  if (isUnified) {
    const merge = unifiedMergeView({ original: before, mergeControls: false, ...settings })
    const view = new EditorView({
      parent: root,
      root,
      state: EditorState.create(side(after, label, [merge, HEIGHT])),
    })
    return { ...handlesOf(view), ...stepsOf(view), ...found }
  }
  const merged = new MergeView({
    parent: root,
    root,
    a: side(before, `${label}, before`),
    b: side(after, `${label}, after`),
    ...settings,
  })
  merged.dom.style.maxHeight = MAX_HEIGHT
  return { ...handlesOf(merged.b), ...stepsOf(merged.b), ...found, destroy: () => merged.destroy() }
}

function stepsOf(view: EditorView) {
  return { next: () => void goToNextChunk(view), previous: () => void goToPreviousChunk(view) }
}

function handlesOf(view: EditorView): CodeView {
  return { find: () => void openSearchPanel(view), destroy: () => view.destroy() }
}
