/** The part of the package that the tests use; it has no types of its own. */
declare module 'parse-prometheus-text-format' {
  interface Family {
    readonly name: string
    readonly help: string
    readonly type: 'COUNTER' | 'GAUGE' | 'HISTOGRAM' | 'SUMMARY' | 'UNTYPED'
    readonly metrics: readonly {
      readonly value?: string
      readonly labels?: Readonly<Record<string, string>>
    }[]
  }
  /** @throws for text that is not in Prometheus' format. */
  export default function parse(text: string): readonly Family[]
}
