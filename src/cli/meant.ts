import { anywhere } from '../base/command-line.js'
import { normalizeWord, suggest } from '../base/text.js'
import { COMMAND_NAMES } from './catalog.js'
import { meantBy } from './settings/table.js'

// Suggestions for unknown words of a command line.

/** Command lines, with the words of other programs for them. */
const MEANINGS: Readonly<Record<string, string>> = {
  comment: 'reply answer say',
  config: 'settings configure env environment set get options',
  doctor: 'check diagnose health status info debug',
  export: 'save dump record download fixture',
  log: 'list ls history deliveries events entries requests ps',
  'log --follow': 'tail follow watch stream logs',
  login: 'signin auth authorize authenticate connect',
  mcp: 'agent agents tools claude codex cursor',
  react: 'reaction emoji like',
  replay: 'resend redeliver retry repeat',
  revoke: 'logout signout disconnect unauthorize',
  routes: 'targets forwards',
  serve: 'start run up listen server receive',
  'serve --forward': 'forward proxy',
  'serve --sandbox': 'sandbox demo',
  'serve --tunnel': 'tunnel expose smee',
  setup: 'init register install',
  source: 'sender senders sources',
  show: 'view inspect cat describe open',
  trigger: 'send fire emit simulate fake test ping',
  verify: 'validate signature',
  wait: 'await expect',
  whoami: 'who me user account',
}

/** Suggests a command line for an unknown command, by its meaning or its spelling. */
export function meantCommand(word: string): string | undefined {
  const line = meantBy(word, MEANINGS) ?? suggest(word, COMMAND_NAMES)
  return line === undefined ? undefined : anywhere(line)
}

/**
 * Options, with the words of other programs for them. `--tail` with a value is an option that takes one; without, one
 * that does not.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  'base-url': 'callback redirecturl',
  body: 'd data json payload',
  'body-file': 'f file',
  concurrency: 'jobs parallel workers',
  'dry-run': 'noop preview simulate',
  event: 'filter name type',
  events: 'event types',
  exec: 'cmd command run script',
  failed: 'errors failing failures',
  follow: 'f live stream tail watch',
  forward: 'destination proxy target to url',
  host: 'addr address bind listen',
  ignore: 'exclude except skip',
  json: 'format o output',
  last: 'count head limit lines max n num number recent tail take',
  local: 'offline',
  'no-browser': 'headless',
  out: 'd dir directory file o output save',
  port: 'listen p',
  pretty: 'format',
  print: 'show stdout',
  profile: 'context env environment p',
  provider: 'codehost forge',
  'provider-url': 'hostname server url',
  quiet: 's silent',
  repo: 'r repository',
  since: 'after from start',
  source: 'from sender service',
  store: 'database db storage',
  text: 'contains grep query search',
  timeout: 'limit wait',
  to: 'destination target u url',
  tunnel: 'expose public smee',
  until: 'before end till',
  user: 'account as login u username',
  verbose: 'debug',
  where: 'filter jq match query select',
  'with-token': 'accesstoken pat token',
  yes: 'assumeyes force noconfirm y',
}

/** Commands of a group, with the words of other programs for them. */
const SUBCOMMANDS: Readonly<Record<string, string>> = {
  add: 'create install new register set store',
  list: 'all get ls show view',
  remove: 'del delete rm uninstall unset',
  test: 'check ping try verify',
}

/** Selects the meanings of these names. */
function among(
  meanings: Readonly<Record<string, string>>,
  names: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(meanings).filter(([name]) => names.includes(name)))
}

interface KnownOption {
  /** `--last` */
  readonly long?: string | undefined
  /** True if it takes a value that must not be missing. */
  readonly required: boolean
  readonly optional: boolean
}

/**
 * Suggests an option, by its meaning or its spelling. Undefined if none is similar.
 * @param word as typed, perhaps with `=` and a value
 * @param next the word after it
 */
export function meantOption(
  word: string,
  next: string | undefined,
  options: readonly KnownOption[],
): string | undefined {
  const [flag = '', ...value] = word.split('=')
  const hasValue = value.length > 0 || (next !== undefined && !next.startsWith('-'))
  const namesOf = (some: readonly KnownOption[]): string[] =>
    some.flatMap(({ long }) => long?.replace(/^--/, '') ?? [])
  const fitting = options.filter(({ required, optional }) => optional || required === hasValue)
  const meaning = (some: readonly KnownOption[]): string | undefined =>
    meantBy(normalizeWord(flag), among(OPTIONS, namesOf(some)))
  const name = meaning(fitting) ?? meaning(options) ?? suggest(flag, namesOf(options))
  return name === undefined ? undefined : `--${name}`
}

/** Suggests a command line for an unknown command of a group with these commands. */
export function meantSubcommand(word: string, group: string, names: readonly string[]): string | undefined {
  const name = meantBy(normalizeWord(word), among(SUBCOMMANDS, names)) ?? suggest(word, names)
  return name === undefined ? undefined : anywhere(`${group} ${name}`)
}
