import { plain, suggest } from '../../base/suggest.js'
import type { OptionName } from './options.js'

/** What other programs call settings. */
const MEANINGS: Readonly<Record<string, OptionName>> = {
  bind: 'host',
  command: 'exec',
  commands: 'exec',
  datadir: 'home',
  domain: 'publicUrl',
  exclude: 'ignore',
  hooksecret: 'webhookSecret',
  parallel: 'concurrency',
  redirecturl: 'baseUrl',
  retention: 'keep',
  routes: 'forward',
  secret: 'webhookSecret',
  smee: 'tunnel',
  target: 'forward',
  targets: 'forward',
}

/** Of the names, keys or variables of settings the one that was probably meant, by its meaning or its spelling. */
export function meantSetting(word: string, names: readonly string[]): string | undefined {
  const key = plain(word)
  const meaning = Object.hasOwn(MEANINGS, key) ? plain(MEANINGS[key] ?? '') : undefined
  // A key of a file can end in File.
  const meant = meaning === undefined ? undefined : names.find((name) => plain(name).startsWith(meaning))
  return meant ?? suggest(word, names)
}

/** ` (did you mean …?)`, or nothing. */
export function didYouMeanSetting(word: string, names: readonly string[]): string {
  const found = meantSetting(word, names)
  return found === undefined ? '' : ` (did you mean ${found}?)`
}
