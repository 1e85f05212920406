import type { Row } from './row.js'

export interface BenchmarkOptions {
  /** Measure with the full numbers of entries and users, which takes far longer and gigabytes of disk. */
  readonly full: boolean
}

export interface Benchmark {
  /** What is measured and how, for readers of the results. */
  readonly about: string
  /** System programs that the benchmark requires. */
  readonly needs: readonly string[]
  run(options: BenchmarkOptions): Promise<readonly Row[]>
}
