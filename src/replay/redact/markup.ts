import { isHolding, isNameOfSecret, isNaming, isSecretName } from './names.js'
import { type TextRange, type Span, trimRange } from './span.js'

interface Attribute extends TextRange {
  readonly name: string
}

type Piece =
  | {
      readonly kind: 'open'
      readonly name: string
      readonly attributes: readonly Attribute[]
      readonly end: number
      readonly isEmpty: boolean
    }
  | { readonly kind: 'close'; readonly name: string; readonly start: number }
  | ({ readonly kind: 'text' } & TextRange)

const TAG_NAME = /<(\/?)([\p{L}_][\p{L}\p{N}_:.-]{0,127})(?=[\s/>])/uy
const ATTRIBUTE =
  /[\s/]{1,1024}([^\s"'<>/=]{1,128})(?:\s{0,64}=\s{0,64}(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?/y
const TAG_END = /[\s/]{0,1024}>/y
/** HTML elements without an end tag. */
const EMPTY = /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/i
const ENDS_AS_NAME = /([\p{L}\p{N} ._-]{2,64})[:=]\s{0,64}$/u
/** Most open elements that an end tag is compared with, since HTML leaves some open. */
const MAX_LEFT_OPEN = 8

/** An open element. */
interface Frame {
  readonly name: string
  /** True if its name, or that of an enclosing element, identifies it as secret. */
  readonly isSecret: boolean
  /** True if one of its children names a secret that another one holds. */
  namesSecret: boolean
  /** Values in children with such names, until it is known whether they are secret. */
  readonly held: TextRange[]
}

/**
 * Finds secrets in XML and HTML: text and attributes of an element that its name, or its attribute `name`, identifies
 * as secret; the value of such an attribute; and text next to such a name, as in
 * `<name>password</name><value>…</value>`.
 */
export function* secretsInMarkup(text: string): Generator<Span> {
  if (!text.includes('<')) return
  // A name in angle brackets is an element only if it has an end tag: in a sentence, `<password>` can be a placeholder.
  const lastEnd = new Map<string, number>()
  for (const piece of pieces(text)) if (piece.kind === 'close') lastEnd.set(piece.name, piece.start)
  const isDocument = /^\s*<[?!\p{L}]/u.test(text)
  const open: Frame[] = [frame('', false)]
  let [isNext, isWhole] = [false, false]
  for (const piece of pieces(text)) {
    const inner = open.at(-1) ?? frame('', false)
    const outer = open.at(-2) ?? inner
    if (piece.kind === 'text') {
      const place = trimRange(text, piece)
      if (!place) continue
      const content = text.slice(place.start, place.end)
      if (inner.isSecret || (isHolding(inner.name) && outer.namesSecret)) yield place
      else if (isNext) yield place
      else if (isHolding(inner.name)) outer.held.push(place)
      // A whole element, or a text before a colon, names the next text.
      const isCell = isWhole && text.startsWith('</', piece.end) && isNameOfSecret(content)
      isNext = !isNext && (isCell || isSecretName(ENDS_AS_NAME.exec(content.slice(-128))?.[1] ?? ''))
      isWhole = false
      if (isCell && isNaming(inner.name)) {
        outer.namesSecret = true
        yield* outer.held
      }
    } else if (piece.kind === 'open') {
      const { name, attributes, end } = piece
      const isNamed = attributes.some(
        (each) =>
          isNaming(each.name.replace(/^data-/i, '')) && isNameOfSecret(text.slice(each.start, each.end)),
      )
      const isSecret = inner.isSecret || isNamed || isSecretName(name)
      for (const each of attributes) {
        const isValue = isHolding(each.name) && (isNamed || isNext)
        if (each.start < each.end && (inner.isSecret || isValue || isSecretName(each.name)))
          yield { start: each.start, end: each.end }
      }
      isWhole = !piece.isEmpty
      if (!piece.isEmpty && ((lastEnd.get(name) ?? 0) >= end || (isDocument && isSecret)))
        open.push(frame(name, isSecret))
    } else {
      isWhole = false
      const at = open.findLastIndex(
        ({ name }, i) => i > 0 && i >= open.length - MAX_LEFT_OPEN && name === piece.name,
      )
      if (at !== -1) open.length = at
    }
  }
}

const frame = (name: string, isSecret: boolean): Frame => ({ name, isSecret, namesSecret: false, held: [] })

/** Splits a text into tags and the text between them. Anything that is not a tag is text. */
function* pieces(text: string): Generator<Piece> {
  const isClosed = { comment: text.lastIndexOf('-->'), data: text.lastIndexOf(']]>') }
  let from = 0
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at)) {
    if (at > from) yield { kind: 'text', start: from, end: at }
    from = at
    const isData = text.startsWith('<![CDATA[', at) && isClosed.data > at
    const isComment = text.startsWith('<!--', at) && isClosed.comment > at
    if (isData || isComment) {
      const end = text.indexOf(isData ? ']]>' : '-->', at)
      yield { kind: 'text', start: at + (isData ? 9 : 4), end }
      at = from = end + 3
      continue
    }
    const { piece, end } = tagAt(text, at)
    if (piece) yield piece
    // Attributes are not read again, or the time would grow with the square of the text.
    at = end
    if (piece) from = at
  }
  if (from < text.length) yield { kind: 'text', start: from, end: text.length }
}

/** Parses the tag that begins at a position, if one does, and returns where reading continues. */
function tagAt(text: string, at: number): { readonly piece?: Piece; readonly end: number } {
  const [all = '', slash = '', name = ''] = execAt(TAG_NAME, text, at) ?? []
  if (name === '') return { end: at + 1 }
  const attributes: Attribute[] = []
  let end = at + all.length
  for (let match = execAt(ATTRIBUTE, text, end); match; match = execAt(ATTRIBUTE, text, end)) {
    end += match[0].length
    const value = match[2] ?? match[3] ?? match[4] ?? ''
    const last = match[4] === undefined && value !== '' ? end - 1 : end
    attributes.push({ name: match[1] ?? '', start: last - value.length, end: last })
  }
  const close = execAt(TAG_END, text, end)?.[0]
  if (close === undefined) return { end }
  end += close.length
  const isEmpty = close.includes('/') || EMPTY.test(name)
  const piece: Piece = slash
    ? { kind: 'close', name, start: at }
    : { kind: 'open', name, attributes, end, isEmpty }
  return { piece, end }
}

function execAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}
