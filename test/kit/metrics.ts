/** A family of /metrics: its type, and each value under its labels as `name=value`. A histogram's parts are families of their own. */
export interface Family {
  readonly type: string
  readonly values: Record<string, number>
}

/**
 * What the running relay measures, by name.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/ Text format details
 */
export async function readMetrics(url: string): Promise<Readonly<Record<string, Family>>> {
  const response = await fetch(`${url}/metrics`)
  const text = await response.text()
  const type = response.headers.get('content-type')
  if (response.status !== 200 || type !== 'text/plain; version=0.0.4; charset=utf-8')
    throw new Error(`/metrics was answered ${response.status} ${type}: ${text}`)
  const families: Record<string, Family> = {}
  for (const line of text.trimEnd().split('\n')) {
    const [, typed, kind = ''] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? []
    if (typed !== undefined) families[typed] = { type: kind.toUpperCase(), values: {} }
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const whole = families[name] ?? families[name.replace(/_(?:bucket|count|sum)$/, '')]
    if (!whole) throw new Error(`no sample: ${line}`)
    const family = (families[name] ??= { type: whole.type, values: {} })
    const key = labels.replaceAll('",', ' ').replaceAll('"', '')
    if (key in family.values) throw new Error(`a second value: ${line}`)
    family.values[key] = Number(value)
  }
  return families
}
