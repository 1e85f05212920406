import { jsonTokens } from '../json/text.js'

/** How a language writes a floating-point number where JavaScript writes it otherwise. */
interface FloatForm {
  /** Powers of ten from which (inclusive) to which (exclusive) a number has no exponent. */
  readonly plain: readonly [from: number, to: number]
  /** Before an exponent: `1.0e+20` has a fraction, `1e+20` has none. */
  readonly hasPoint?: true
  readonly mark: 'e' | 'E'
  /** Before an exponent that is not negative. */
  readonly plus: '+' | ''
  /** Minimum digits of an exponent. */
  readonly digits: 1 | 2
}

/**
 * Languages whose floating-point numbers JavaScript writes otherwise: a whole one is `1.0` in all of them. JavaScript
 * (ECMA-262 section 6.1.6.1.20) and Go (encoding/json, floatEncoder) have no fraction in a whole number, and an exponent
 * from 1e21 and below 1e-6.
 *
 * - Ruby: flo_to_s in numeric.c, which Yajl, Oj and ActiveSupport write, too. GitHub and GitLab are Ruby.
 * - Python: format_float_short in Python/pystrtod.c, by float.__repr__ of json and simplejson.
 * - Java: Double.toString, which Jackson and Gson write.
 * - PHP: smart_str_append_double with JSON_PRESERVE_ZERO_FRACTION, and php_gcvt in main/snprintf.c.
 * - .NET: Double.ToString("R"), which Newtonsoft.Json ends in `.0`.
 */
const FORMS: readonly FloatForm[] = [
  { plain: [-4, 16], hasPoint: true, mark: 'e', plus: '+', digits: 2 },
  { plain: [-4, 16], mark: 'e', plus: '+', digits: 2 },
  { plain: [-3, 7], hasPoint: true, mark: 'E', plus: '', digits: 1 },
  { plain: [-4, 17], hasPoint: true, mark: 'e', plus: '+', digits: 1 },
  { plain: [-4, 15], mark: 'E', plus: '+', digits: 2 },
]

/** Writes a number in a form. All languages write the fewest digits that are read as the same number. */
function write(value: number, { plain: [from, to], hasPoint, mark, plus, digits }: FloatForm): string {
  // JavaScript writes whole numbers below 1e21 in digits.
  if (Number.isInteger(value) && Math.abs(value) < 10 ** to) return `${value}.0`
  const [mantissa = '', power = '0'] = value.toExponential().split('e')
  const exponent = Number(power)
  const sign = value < 0 ? '-' : ''
  const [, first = '0', rest = ''] = /(\d)\.?(\d*)/.exec(mantissa) ?? []
  if (exponent < from || exponent >= to) {
    const fraction = rest || (hasPoint ? '0' : '')
    const size = String(Math.abs(exponent)).padStart(digits, '0')
    return `${sign}${first}${fraction && `.${fraction}`}${mark}${exponent < 0 ? '-' : plus}${size}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${first}${rest}`
  const whole = `${first}${rest}`.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  return `${sign}${whole}.${rest.slice(exponent) || '0'}`
}

/** From this value on, JavaScript's numbers have no exact decimals. */
const MAX_MONEY = 1e13

/** Two decimals, as programs write amounts of money from a decimal type. Undefined for a number that has more. */
function writeMoney(value: number): string | undefined {
  if (Math.abs(value) >= MAX_MONEY) return undefined
  const text = value.toFixed(2)
  return Number.isInteger(value) || Number(text) === value ? text : undefined
}

type Writer = (value: number) => string | undefined

/** Ways to write floating-point numbers, the likeliest first. `1.50` is for money, which has two decimals. */
const WRITERS: readonly Writer[] = [
  ...FORMS.map(
    (form): Writer =>
      (value) =>
        write(value, form),
  ),
  writeMoney,
]

/** A number in JSON text. */
interface NumberToken {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly value: number
  /** True if it has neither fraction nor exponent, so that it may have been an integer. */
  readonly isWhole: boolean
  /** Name of its member after that of the object around it: `cvss.score`. Items of a list have the list's name. */
  readonly member: string
}

/** Longest text that is read, in characters: the largest body of a smee server. */
const MAX_TEXT = 1_048_576
/** Most numbers of a text: each is written in all ways. */
const MAX_NUMBERS = 10_000

/**
 * Finds the numbers in JSON text. None if it has more than {@link MAX_NUMBERS}.
 * @throws RangeError for more than `MAX_DEPTH` nested arrays and objects
 */
function numbersIn(json: string): readonly NumberToken[] {
  const tokens: NumberToken[] = []
  if (json.length > MAX_TEXT) return tokens
  /** The member at each depth: its name, and that of the object around it. */
  const path: (readonly [name: string, parent: string])[] = []
  let before = ''
  for (const { start, end, depth } of jsonTokens(json)) {
    const first = json.charAt(start)
    const [name = '', parent = ''] = path[depth] ?? []
    if (first === '[') path[depth + 1] = [name, parent]
    else if (first === '{') path[depth + 1] = ['', name]
    else if (first === ':') path[depth] = [before, parent]
    else if (first === '"') before = json.slice(start + 1, end - 1)
    else if (NUMBER.test(first)) {
      const text = json.slice(start, end)
      const isWhole = !/[.e]/.test(text)
      tokens.push({ start, end, text, value: Number(text), isWhole, member: `${parent}.${name}` })
      if (tokens.length > MAX_NUMBERS) return []
    }
  }
  return tokens
}

const NUMBER = /[-\d]/

/** Ends of the names of members that identify or count: these are integers. */
const INTEGER = /(?:id|ids|number|count|size|line|position|port|version)$/i

/** Another text of a number, and the bytes that it is longer. */
interface Written {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly growth: number
}

/** Numbers that are changed together. */
interface Change {
  readonly numbers: readonly Written[]
  readonly growth: number
}

/** Changes that one way to write floating-point numbers makes. */
interface Changes {
  /** Those of numbers that are no integers in any language. */
  readonly fractions: Change
  /** Those of whole numbers, by member, the likeliest first. */
  readonly members: readonly Change[]
  /**
   * How many of the first members are likely, in four steps: those known to have floating-point numbers; also those that have
   * some numbers with a fraction; also those whose name does not indicate integers; all.
   */
  readonly likely: readonly number[]
  /** Minimum and maximum of added bytes. */
  readonly range: readonly [least: number, most: number]
}

/**
 * The numbers of a JSON text as JavaScript writes it, which another language may have written otherwise: `0.0`, which became
 * `0`, or `1.0e+20`. Which whole numbers were floating-point numbers is unknown.
 */
export class Numbers {
  readonly #json: string
  readonly #tokens: readonly NumberToken[]
  readonly #known: ReadonlySet<string>
  #changes: readonly Changes[] | undefined

  /**
   * @param known members that the sender is known to write as floating-point numbers, as `cvss.score`
   * @throws RangeError for more than `MAX_DEPTH` nested arrays and objects
   */
  constructor(json: string, known: readonly string[] = []) {
    this.#json = json
    this.#tokens = numbersIn(json)
    this.#known = new Set(known)
  }

  /**
   * Yields texts in which numbers are written otherwise, the likeliest first, each once: those that are longer by `growth`
   * bytes, within bounds; without `growth`, those in which all numbers of likely members are. With `isQuick`, only these.
   */
  *texts(growth: number | undefined, isQuick: boolean): Generator<string> {
    if (this.#tokens.length === 0) return
    const all = (this.#changes ??= WRITERS.map((writer) => this.#changesOf(writer)))
    const possible = all.filter(
      ({ range: [least, most] }) => growth === undefined || (growth >= least && growth <= most),
    )
    const seen = new Set<string>()
    for (const choose of growth === undefined || isQuick ? [simpleChoices] : [simpleChoices, otherChoices])
      for (const changes of possible)
        for (const chosen of choose(changes, growth ?? NaN)) {
          const numbers = chosen.flatMap((change) => change.numbers).toSorted((a, b) => a.start - b.start)
          const key = numbers.map(({ start, text }) => `${start} ${text}`).join()
          if (numbers.length === 0 || seen.has(key)) continue
          seen.add(key)
          yield this.#write(numbers)
        }
  }

  #changesOf(writer: Writer): Changes {
    const fractions: Written[] = []
    const fractional = new Set<string>()
    const whole = new Map<string, Written[]>()
    for (const token of this.#tokens) {
      const { start, end, member, isWhole, text } = token
      if (!isWhole) fractional.add(member)
      const written = writer(token.value)
      if (written === undefined || written === text) continue
      const own = isWhole ? (whole.get(member) ?? []) : fractions
      if (isWhole) whole.set(member, own)
      own.push({ start, end, text: written, growth: written.length - text.length })
    }
    const rankOf = (member: string): number => {
      if (this.#known.has(member)) return 0
      if (fractional.has(member)) return 1
      return INTEGER.test(member) ? 3 : 2
    }
    const ranked = [...whole].map(([member, numbers]) => ({
      rank: rankOf(member),
      change: changeOf(numbers),
    }))
    const all = ranked.flatMap(({ change }) => change.numbers)
    const { growth: base } = changeOf(fractions)
    const sumOf = (sign: 1 | -1): number =>
      all.reduce((sum, { growth }) => sum + (growth * sign > 0 ? growth : 0), base)
    return {
      range: [sumOf(-1), sumOf(1)],
      fractions: changeOf(fractions),
      members: ranked.toSorted((a, b) => a.rank - b.rank).map(({ change }) => change),
      likely: [0, 1, 2, 3].map((most) => ranked.filter(({ rank }) => rank <= most).length),
    }
  }

  /** Replaces numbers, which are in order. */
  #write(numbers: readonly Written[]): string {
    let [written, from] = ['', 0]
    for (const { start, end, text } of numbers) {
      written += this.#json.slice(from, start) + text
      from = end
    }
    return written + this.#json.slice(from)
  }
}

function changeOf(numbers: readonly Written[]): Change {
  return { numbers, growth: numbers.reduce((sum, { growth }) => sum + growth, 0) }
}

/**
 * Yields the changes of fractions with those of the likely members, the likeliest first. The same may come again.
 * @param growth NaN: any
 */
function* simpleChoices(
  { fractions, members, likely }: Changes,
  growth: number,
): Generator<readonly Change[]> {
  for (const count of likely) {
    const chosen = [fractions, ...members.slice(0, count)]
    if (Number.isNaN(growth) || growth === growthOf(chosen)) yield chosen
  }
}

/** Yields the changes of fractions with those of a few other members, of all but a few, and of a few single numbers. */
function* otherChoices(
  { fractions, members }: Changes,
  growth: number | undefined,
): Generator<readonly Change[]> {
  if (growth === undefined) return
  const left = growth - fractions.growth
  for (const chosen of choices(members, left)) yield [fractions, ...chosen]
  for (const omitted of choices(members, growthOf(members) - left))
    yield [fractions, ...members.filter((member) => !omitted.includes(member))]
  const single = members.flatMap(({ numbers }) => numbers.map((one) => changeOf([one])))
  for (const chosen of choices(single, left)) yield [fractions, ...chosen]
}

function growthOf(changes: readonly Change[]): number {
  return changes.reduce((sum, { growth }) => sum + growth, 0)
}

/** Most changes that are chosen, most choices for one growth and one way to write, and most steps to find them. */
const MAX_CHOSEN = 12
const MAX_CHOICES = 16
const MAX_STEPS = 4096

/** Yields choices of changes that add `growth` bytes together, the smallest first, within bounds. */
function* choices(all: readonly Change[], growth: number): Generator<readonly Change[]> {
  let [steps, found] = [0, 0]
  const chosen: Change[] = []
  function* choose(from: number, count: number, left: number): Generator<readonly Change[]> {
    if (count === 0) {
      if (left !== 0) return
      found++
      yield [...chosen]
      return
    }
    for (let at = from; at <= all.length - count; at++) {
      const change = all[at]
      if (!change || ++steps > MAX_STEPS || found >= MAX_CHOICES) return
      chosen.push(change)
      yield* choose(at + 1, count - 1, left - change.growth)
      chosen.pop()
    }
  }
  const sizes = all.map((change) => change.growth)
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  // Fewer or more changes cannot add as much.
  const fewest = most > 0 ? Math.max(1, Math.ceil(growth / most)) : 1
  const largest = least > 0 ? Math.floor(growth / least) : MAX_CHOSEN
  for (let count = fewest; count <= Math.min(largest, all.length, MAX_CHOSEN); count++)
    yield* choose(0, count, growth)
}
