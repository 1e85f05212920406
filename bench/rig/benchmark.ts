import type { Row } from './row.js'

export interface BenchmarkOptions {
  /** As much as the targets speak of, where that takes too long or too much disk otherwise. */
  readonly full: boolean
}

export interface Benchmark {
  /** What is done and how, for who reads the results. */
  readonly about: string
  /** Programs of the system without which nothing of it can be measured. */
  readonly needs: readonly string[]
  run(options: BenchmarkOptions): Promise<readonly Row[]>
}
