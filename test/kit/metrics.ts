/** A family of /metrics: its type, and each value under its labels as `name=value`. A histogram's parts are families of their own. */
export interface Family {
  readonly type: string
  readonly values: Readonly<Record<string, number>>
}

/** What the running relay measures, by name. Fails for an answer that is not in Prometheus' text format. */
export async function readMetrics(url: string): Promise<Readonly<Record<string, Family>>> {
  const response = await fetch(`${url}/metrics`)
  const text = await response.text()
  const type = response.headers.get('content-type')
  if (response.status !== 200 || type !== 'text/plain; version=0.0.4; charset=utf-8')
    throw new Error(`/metrics was answered ${response.status} ${type}: ${text}`)
  return parseMetrics(text)
}

const NAME = '[a-zA-Z_:][\\w:]*'
const LABEL = `([a-zA-Z_]\\w*)="((?:[^"\\\\]|\\\\["\\\\n])*)"`
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:${LABEL}(?:,|(?=\\})))*)\\})? (\\S+)$`)
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`)
const PARTS = /_(?:bucket|count|sum)$/

/** @see https://prometheus.io/docs/instrumenting/exposition_formats/ Text format details */
export function parseMetrics(text: string): Record<string, Family> {
  const families: Record<string, { type: string; values: Record<string, number> }> = {}
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  for (const line of text.slice(0, -1).split('\n')) {
    const [, typed, type] = TYPE.exec(line) ?? []
    if (typed !== undefined && type !== undefined) {
      if (families[typed]) throw new Error(`a second type: ${line}`)
      families[typed] = { type: type.toUpperCase(), values: {} }
    }
    if (line === '' || line.startsWith('#')) continue
    const sample = SAMPLE.exec(line)
    const name = sample?.[1] ?? ''
    const whole = families[name] ?? families[name.replace(PARTS, '')]
    const value = numberOf(sample?.at(-1) ?? '')
    if (!whole || value === undefined) throw new Error(`no sample: ${line}`)
    const labels = [...(sample?.[2] ?? '').matchAll(new RegExp(LABEL, 'g'))]
    const key = labels.map(([, label, given = '']) => `${label}=${unescaped(given)}`).join(' ')
    const family = (families[name] ??= { type: whole.type, values: {} })
    if (key in family.values) throw new Error(`a second value: ${line}`)
    family.values[key] = value
  }
  return families
}

/** As Go reads numbers, in which Prometheus is written: `Nan`, which prom-client writes, is one too. */
function numberOf(text: string): number | undefined {
  if (/^nan$/i.test(text)) return Number.NaN
  const value = Number(text.replace(/^([+-]?)inf$/i, '$1Infinity'))
  return Number.isNaN(value) ? undefined : value
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, each: string) => (each === 'n' ? '\n' : each))
}
