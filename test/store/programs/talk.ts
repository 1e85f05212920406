import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

let lines: AsyncIterator<string> | undefined

/** Waits for a line from the test. From then on standard input keeps the program running. */
export async function heard(): Promise<void> {
  lines ??= createInterface(process.stdin)[Symbol.asyncIterator]()
  await lines.next()
}

/** Prints a line at once: what was said before a crash has been said. */
export function say(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`)
}
