import type { Argument, Command, Option } from 'commander'
import { Journal } from '../../journal/journal.js'
import { listProfiles } from '../../instance/profile.js'
import { sentEvents } from '../../senders/events.js'
import { REACTIONS } from '../../codehost/actions.js'
import { hostEvents } from '../../senders/hosts.js'
import type { Summary } from '../../journal/types.js'
import { hostSource } from '../../base/source-names.js'
import { printable } from '../../base/text.js'
import { define, type Flags, type Shell } from '../command.js'
import { sourcedName } from '../output/deliveries.js'
import { localTime } from '../output/time.js'
import { openProfile } from '../profile.js'
import { openSettings } from '../settings/read.js'
import { SOURCE_SCHEMES } from '../../senders/source-text.js'
import { isSettingName, SETTING_NAMES, settingOf } from '../settings/table.js'
import { readSources } from '../sources.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export const completionCommand = define({
  description: `Prints a script that completes relay's commands, flags and their values in your shell. Put the line for your shell into its
start-up file. zsh and fish show what each word means; bash cannot show that.`,
  examples: `source <(relay completion bash)  in ~/.bashrc
source <(relay completion zsh)   in ~/.zshrc, after compinit
relay completion fish | source   in ~/.config/fish/config.fish`,
  args: [['<shell>', SHELLS.join(', '), SHELLS]],
  takesMore: true,
  input: (flags, shell: keyof typeof SCRIPTS, _: unknown, command: Command): CompletionInput => {
    const [, ...typed] = command.args
    return { ...flags, shell, typed, program: command.parent ?? command }
  },
  run: runCompletion,
  print: (completed, out) => out.exactly(completed.script ?? completed.offers),
  json: (completed) =>
    completed.script === undefined ? completed.offers : { ...completed, script: completed.script.trimEnd() },
})

/**
 * Kinds of words that depend on the profile: numbers of entries and `last`, events, profiles, sources, and events that
 * can be triggered.
 */
type WordKind = 'entries' | 'events' | 'profiles' | 'sources' | 'triggers'

interface Offer {
  readonly word: string
  /** Description of the word; empty for a value. */
  readonly help: string
}

/** Values of flags on the line, by flag name. */
type TypedFlags = Readonly<Partial<Record<string, string>>>

/** Makes the shell offer its files, too. */
const FILES: Offer = { word: ':files', help: '' }

/** Words by the name of an argument or option, if the command line itself has no list. */
const WORDS: Readonly<Record<string, WordKind | readonly string[]>> = {
  entry: 'entries',
  file: 'entries',
  event: 'triggers',
  match: 'events',
  reaction: REACTIONS,
  scheme: SOURCE_SCHEMES,
  source: 'sources',
  '--source': 'sources',
  '--sources': SOURCE_SCHEMES,
  '--reveal <source>': 'sources',
  '--event': 'events',
  '--ignore': 'events',
  '--profile': 'profiles',
  '--from': 'entries',
  '--reveal': SETTING_NAMES,
}

/** Formats of an offer for each shell. `start` is `--flag=` before a value. */
const FORMATS = {
  // bash inserts the word unchanged.
  bash: ({ word }: Offer) => word.replaceAll(' ', String.raw`\ `),
  // fish compares the whole word, the other shells only the part after the sign.
  fish: ({ word, help }: Offer, start: string) => `${start}${word}\t${help}`,
  // zsh ends the word at the first colon.
  zsh: ({ word, help }: Offer) =>
    word.replaceAll(/[\\:]/g, String.raw`\$&`) + (help === '' ? '' : `:${help}`),
}

interface CompletionInput extends Flags {
  readonly shell: keyof typeof SCRIPTS
  /** Words after `relay` that are typed so far. */
  readonly typed: readonly string[]
  readonly program: Command
}

/** Prints the shell's script or, with the typed words after `--`, the completions of the last one, one a line. */
async function runCompletion(shell: Shell, flags: CompletionInput): Promise<Completed> {
  const { shell: name, typed, program } = flags
  const script = SCRIPTS[name]
  if (typed.length === 0) return { shell: name, script }
  // bash makes a separate word of the sign in --flag=value.
  const joined = typed.join('\0')
  const words = (name === 'bash' ? joined.replaceAll(/\0=(?:\0|$)/g, '=') : joined).split('\0')
  const offers = await complete(program, words, (kind, { profile, source }) =>
    findWords(shell, { ...flags, ...(profile !== undefined && { profile }) }, kind, source),
  )
  const [start = ''] = /^--[^=]+=/.exec(words.at(-1) ?? '') ?? []
  const lines = offers.map((offer) => `${offer === FILES ? FILES.word : FORMATS[name](offer, start)}\n`)
  return { shell: name, offers: lines.join('') }
}

/** The shell's script, or offers, one a line. */
type Completed =
  | { readonly shell: string; readonly script: string }
  | { readonly shell: string; readonly script?: undefined; readonly offers: string }

/**
 * Finds completions of the last word after `relay`, files first. `find` searches the profile and the source named on
 * the line.
 */
async function complete(
  program: Command,
  typed: readonly string[],
  find: (kind: WordKind, given: TypedFlags) => Promise<readonly Offer[]>,
): Promise<Offer[]> {
  const words = typed.flatMap((word) => (/^--[^=]+=/.test(word) ? word.split(/=(.*)/s, 2) : word))
  const current = words.at(-1) ?? ''
  const isAssigned = current !== typed.at(-1)
  let [command, position] = [program, 0]
  /** Option whose value comes next. */
  let open: Option | undefined
  const given: Record<string, string> = {}
  for (const word of words.slice(0, -1)) {
    const isFlag = /^-./.test(word)
    const found = command.commands.find((each) => position === 0 && each.name() === word)
    if (open && (open.required || !isFlag)) {
      given[open.name()] = word
      open = undefined
    } else if (isFlag) {
      const option = optionsOf(command).find(({ long, short }) => word === long || word === short)
      open = option?.required || option?.optional ? option : undefined
    } else if (found) command = word === 'help' ? program : found
    else position += 1
  }
  const offer = (offers: readonly Offer[]): Offer[] =>
    offers.filter(({ word }) => word !== '' && word.startsWith(current))
  // The value of `--tunnel [url]` is optional.
  if (current.startsWith('-') && !open?.required) return offer(flagsOf(command))
  const { commands, registeredArguments: all } = command
  if (!open && !isAssigned && position === 0 && commands.length > 0)
    return offer(commands.map((each) => ({ word: each.name(), help: each.summary() })))
  const argument = all[position] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined)
  const place = open ?? (isAssigned ? undefined : argument)
  if (!place) return []
  const known = wordsOf(place)
  const found = typeof known === 'string' ? await find(known, given) : known.map(plain)
  const label = 'flags' in place ? place.flags.replace(/^[^<[]*/, '') : place.name()
  const files = /\bfile\b/.test(label) ? [FILES] : []
  return [...files, ...offer(found)]
}

function plain(word: string): Offer {
  return { word, help: '' }
}

function optionsOf(command: Command): readonly Option[] {
  const above = command.parent ? optionsOf(command.parent) : []
  return [
    ...command.options,
    ...above.filter(({ long }) => command.options.every((one) => one.long !== long)),
  ]
}

/** Lists the flags of the command with their help, without its notes, as one line. */
function flagsOf(command: Command): Offer[] {
  const flags = optionsOf(command).map(({ long = '', description }) => ({
    word: long,
    help: description.replace(/ \((?:repeatable|env:|default:).*/s, ''),
  }))
  return [...flags, { word: '--help', help: 'print this help' }]
}

function wordsOf(place: Option | Argument): WordKind | readonly string[] {
  const isOption = 'attributeName' in place
  const name = isOption ? place.attributeName() : place.name()
  const ofSetting = isOption && isSettingName(name) ? settingOf(name).choices : undefined
  const words = isOption ? (WORDS[place.flags] ?? WORDS[`--${name}`]) : WORDS[name]
  return place.argChoices ?? words ?? ofSetting ?? []
}

/** Number of entries that are offered: as many as fit on a screen. */
const RECENT = 20

/** Reads the words of a profile. Creates no profile. */
async function findWords(
  shell: Shell,
  flags: Flags,
  kind: WordKind,
  ofSource: string | undefined,
): Promise<readonly Offer[]> {
  // Needed to choose among several running instances.
  if (kind === 'profiles') return listProfiles((await openSettings(shell, flags)).home).map(plain)
  await using profile = await openProfile(shell, flags, { mustExist: false, problems: 'report' })
  const provider = hostSource(profile.values.provider)
  if (kind === 'events')
    return [...sentEvents(hostEvents(provider))]
      .flatMap(([event, actions]) => [event, ...actions.map((action) => `${event}.${action}`)])
      .map(plain)
  const entries: Offer[] = []
  const data = await profile.data()
  if (kind === 'sources' || kind === 'triggers') {
    const sources = await readSources(shell, profile, data)
    if (kind === 'sources') return sources.map(({ name }) => plain(name))
    if (ofSource === undefined) {
      const ofEach = sources.map(async ({ name, scheme }) => await triggers(scheme, `${name}/`))
      return [...(await triggers(provider)), ...(await Promise.all(ofEach)).flat()]
    }
    return await triggers(sources.find(({ name }) => name === ofSource)?.scheme ?? ofSource ?? provider)
  }
  if (data)
    for await (const entry of new Journal(data.sql).select({ last: RECENT }))
      entries.push({ word: String(entry.n), help: entryHelp(entry) })
  return [{ word: 'last', help: 'the newest entry' }, ...entries]
}

async function triggers(scheme: string, before = ''): Promise<readonly Offer[]> {
  // Loaded late: reads fixtures, with zod.
  const { triggerEvents } = await import('../../replay/synthesize.js')
  return triggerEvents(scheme).map((event) => plain(before + event))
}

/** Describes an entry, whose names come from outside: `2023-11-15 03:43:20 issues.opened octo/demo`. */
function entryHelp({ receivedAt, repo, ...named }: Summary): string {
  return printable([localTime(receivedAt), sourcedName(named), repo ?? ''].join(' ').trimEnd())
}

const SCRIPTS = {
  // bash 3.2 and later may lack `compopt`.
  bash: String.raw`# bash completion for relay. Load it with: source <(relay completion bash)
_relay() {
  local IFS=$'\n' cur=${'$'}{COMP_WORDS[COMP_CWORD]}
  COMPREPLY=($(relay completion bash -- "${'$'}{COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${'$'}{COMPREPLY[0]-} == :files ]] || return 0
  compopt -o filenames 2>/dev/null
  COMPREPLY=("${'$'}{COMPREPLY[@]:1}" $(compgen -f -- "${'$'}{cur#=}"))
}
complete -F _relay relay
`,

  // This script is sourced after compinit, or saved as `_relay` in a folder of fpath.
  zsh: String.raw`#compdef relay
# zsh completion for relay. Load it with: source <(relay completion zsh)
_relay() {
  local -a offers=("${'$'}{(@f)$(relay completion zsh -- "${'$'}{(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ $PREFIX == --*=* ]] && compset -P '*='
  if [[ $offers[1] == :files ]]; then shift offers; _files; fi
  [[ -z $offers ]] || _describe relay offers
}
if [[ $funcstack[1] == _relay ]]; then _relay "$@"; else compdef _relay relay; fi
`,

  fish: String.raw`# fish completion for relay. Load it with: relay completion fish | source
function __relay_complete
  set -l typed (commandline -opc) (commandline -ct)
  set -l offers (relay completion fish -- $typed[2..-1] 2>/dev/null)
  if test "$offers[1]" = :files
    set -e offers[1]
    __fish_complete_path (commandline -ct)
  end
  printf '%s\n' $offers
end
complete -c relay -f -a '(__relay_complete)'
`,
}
