/** Numbers asked for in one query. One size means one statement to prepare. */
const CHUNK = 64

/** A list of marks for SQL, and the values in their place. */
export interface Marks {
  readonly marks: string
  readonly values: readonly number[]
}

/** `(?, ?, …)` for these numbers; one number, or as many as make a chunk: the rest repeat the first. */
export function marksFor(numbers: readonly number[]): Marks {
  const size = numbers.length <= 1 ? 1 : CHUNK
  const values = Array.from({ length: size }, (_, i) => numbers[i] ?? numbers[0] ?? 0)
  return { marks: `(${values.map(() => '?').join(', ')})`, values }
}

/** The numbers in chunks, each for one query. */
export function chunksOf(numbers: readonly number[]): readonly (readonly number[])[] {
  const count = Math.ceil(numbers.length / CHUNK)
  return Array.from({ length: count }, (_, i) => numbers.slice(i * CHUNK, (i + 1) * CHUNK))
}

/** The marks of each chunk. */
export function inMarks(numbers: readonly number[]): readonly Marks[] {
  return chunksOf(numbers).map(marksFor)
}
