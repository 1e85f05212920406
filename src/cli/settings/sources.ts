import { isUnsigned, parseSource } from '../../senders/source-text.js'

/** Checks sources. @throws Error with an explanation that completes "sources: …" and does not repeat a possible secret */
export function checkSources(texts: readonly string[]): void {
  const names = texts.map((each) => parseSource(each).name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined)
    throw new Error(`two sources are called ${twice}. Give one another name: --source other=scheme`)
}

/** True if something proves the deliveries of a source. */
export function isProved(text: string): boolean {
  return !isUnsigned(parseSource(text).scheme)
}
