import parse from 'parse-prometheus-text-format'

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
  // The parser drops the labels of histograms, but not those of what a histogram consists of.
  const samples = text.replaceAll(/^# TYPE .* histogram$/gm, '')
  const families: Record<string, Family> = {}
  for (const { name, type, metrics } of parse(samples)) {
    const values = metrics.map(({ value, labels = {} }) => [labelText(labels), Number(value)] as const)
    families[name] = { type, values: { ...families[name]?.values, ...Object.fromEntries(values) } }
  }
  return families
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
