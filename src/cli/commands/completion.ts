import type { Argument, Command, Option } from 'commander'
import { Journal } from '../../journal/journal.js'
import { listProfiles } from '../../instance/profile.js'
import { sentEvents } from '../../codehost/events.js'
import { REACTIONS } from '../../codehost/host.js'
import { schemeOf } from '../../codehost/schemes.js'
import { triggers } from '../../replay/synthesize.js'
import type { Flags, Shell } from '../command.js'
import { attach, openData } from '../profile.js'
import { openSettings } from '../settings/read.js'
import { isSettingName, SETTING_NAMES, settingOf } from '../settings/table.js'

/** A word that completes the one that is being typed. */
export interface Offer {
  readonly word: string
  /** What it means; empty for a value. */
  readonly help: string
}

/** Words that depend on the profile: numbers of entries and `last`, events, profiles, events that can be triggered. */
export type WordKind = 'entries' | 'events' | 'profiles' | 'triggers'

/** Finds such words, in the profile that is typed on the line. */
export type FindWords = (kind: WordKind, profile: string | undefined) => Promise<readonly string[]>

export interface Completion {
  readonly offers: readonly Offer[]
  /** Whether the shell is to offer its files too. */
  readonly files: boolean
}

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/**
 * Runs `relay completion`: prints the shell's script, or, with the words typed so far after `--`, what completes the last one, a line each.
 * The line `:files` before them asks for files.
 */
export async function runCompletion(
  shell: Shell,
  flags: Flags,
  name: keyof typeof SHELLS,
  _: unknown,
  command: Command,
): Promise<void> {
  const { out } = shell
  const [, ...typed] = command.args
  const script = SHELLS[name]()
  if (typed.length === 0) {
    if (shell.json) out.object({ shell: name, script: script.trimEnd() })
    else out.exactly(script)
    return
  }
  const program = command.parent ?? command
  const words = name === 'bash' ? joinAssignments(typed) : typed
  const { offers, files } = await complete(program, words, (kind, profile) =>
    findWords(shell, { ...flags, ...(profile !== undefined && { profile }) }, kind),
  )
  // fish compares the whole word, the others what follows the sign in --flag=value.
  const start = name === 'fish' ? (/^--[^=]+=/.exec(words.at(-1) ?? '')?.[0] ?? '') : ''
  const lines = offers.map((offer) => formatOffer(name, start, offer))
  for (const line of [...(files ? [':files'] : []), ...lines]) out.exactly(`${line}\n`)
}

function formatOffer(name: keyof typeof SHELLS, start: string, { word, help }: Offer): string {
  if (name === 'bash') return word
  if (name === 'fish') return `${start}${word}\t${help}`
  // The first colon ends the word for zsh.
  return `${word.replaceAll(/[\\:]/g, String.raw`\$&`)}${help === '' ? '' : `:${help}`}`
}

/** bash makes a word of the sign in `--flag=value`. */
function joinAssignments(typed: readonly string[]): readonly string[] {
  const joined: string[] = []
  for (const [i, word] of typed.entries()) {
    const isValue = word === '=' || (typed[i - 1] === '=' && i > 1)
    if (isValue && joined.length > 0) joined.push(`${joined.pop()}${word}`)
    else joined.push(word)
  }
  return joined
}

/** What completes the last of the typed words, the first of which follows `relay`. */
export async function complete(
  program: Command,
  typed: readonly string[],
  find: FindWords,
): Promise<Completion> {
  const current = typed.at(-1) ?? ''
  const { command, position, open, profile } = readWords(program, typed.slice(0, -1))
  const [, flag, start = ''] = /^(--[^=]+)=(.*)$/.exec(current) ?? []
  const assigned = flag === undefined ? undefined : optionsOf(command).find(({ long }) => long === flag)
  // The value of `--tunnel [url]` may be missing.
  const isValue = open?.required === true || !current.startsWith('-')
  const option = assigned ?? (isValue ? open : undefined)
  if (option) return offer(valuesOf(option), assigned ? start : current)
  if (current.startsWith('-')) {
    const flags = optionsOf(command).map(({ long, description }) => ({
      word: long ?? '',
      help: brief(description),
    }))
    return fitting([...flags, { word: '--help', help: 'print this help' }], current)
  }
  if (command.commands.length > 0) {
    const commands = command.commands.map((each) => ({ word: each.name(), help: each.summary() }))
    return position === 0 ? fitting(commands, current) : NOTHING
  }
  const all = command.registeredArguments
  const argument = all[position] ?? (all.at(-1)?.variadic === true ? all.at(-1) : undefined)
  return argument ? offer(valuesOf(argument), current) : NOTHING

  async function offer({ choices, kind, files }: Values, start: string): Promise<Completion> {
    const found = kind === undefined ? choices : await find(kind, profile)
    return {
      ...fitting(
        found.map((word) => ({ word, help: '' })),
        start,
      ),
      files,
    }
  }
}

const NOTHING: Completion = { offers: [], files: false }

function fitting(offers: readonly Offer[], start: string): Completion {
  return { offers: offers.filter(({ word }) => word !== '' && word.startsWith(start)), files: false }
}

interface Place {
  readonly command: Command
  /** How many arguments of the command there are before. */
  readonly position: number
  /** The option whose value comes next. */
  readonly open: Option | undefined
  readonly profile: string | undefined
}

/** Where the words lead. A word that relay does not know is passed over. */
function readWords(program: Command, words: readonly string[]): Place {
  let [command, position] = [program, 0]
  let [open, profile]: [Option | undefined, string | undefined] = [undefined, undefined]
  for (const word of words) {
    const isFlag = /^-./.test(word)
    if (open && (open.required || !isFlag)) {
      if (open.long === '--profile') profile = word
      open = undefined
    } else if (isFlag) {
      const [name, value] = word.split(/=(.*)/s)
      const option = optionsOf(command).find(({ long, short }) => name === long || name === short)
      if (option?.long === '--profile') profile = value ?? profile
      open = value === undefined && (option?.required || option?.optional) ? option : undefined
    } else {
      open = undefined
      const found = position === 0 ? command.commands.find((each) => each.name() === word) : undefined
      if (found) command = found
      else position += 1
    }
  }
  return { command, position, open, profile }
}

/** The options of the command, and those of relay itself. */
function optionsOf(command: Command): readonly Option[] {
  const own = command.options.filter(({ hidden }) => !hidden)
  const above = command.parent ? optionsOf(command.parent) : []
  return [...own, ...above.filter(({ long }) => own.every((each) => each.long !== long))]
}

/** The text of the help without its notes, as one line. */
function brief(description: string): string {
  return description.replace(/ \((?:repeatable|env: |default: ).*/s, '').replaceAll(/\s+/g, ' ')
}

/** What can stand in one place. */
interface Values {
  readonly choices: readonly string[]
  readonly kind: WordKind | undefined
  readonly files: boolean
}

/** Words of a place that accepts others too, by the name of an option or argument. */
const KNOWN: Readonly<Record<string, readonly string[]>> = { reveal: SETTING_NAMES, reaction: REACTIONS }
/** By the name of an argument. */
const ARGUMENT_WORDS: Readonly<Record<string, WordKind>> = {
  entry: 'entries',
  file: 'entries',
  event: 'triggers',
  match: 'events',
}
/** By the name of an option. */
const OPTION_WORDS: Readonly<Record<string, WordKind>> = {
  event: 'events',
  ignore: 'events',
  profile: 'profiles',
  from: 'entries',
}

function valuesOf(place: Option | Argument): Values {
  const isOption = 'attributeName' in place
  const name = isOption ? place.attributeName() : place.name()
  const label = isOption ? (/[<[](.+)[>\]]$/.exec(place.flags)?.[1] ?? '') : name
  const ofSetting = isOption && isSettingName(name) ? settingOf(name).choices : undefined
  return {
    choices: place.argChoices ?? ofSetting ?? KNOWN[name] ?? [],
    kind: (isOption ? OPTION_WORDS : ARGUMENT_WORDS)[name],
    files: /\bfile\b/.test(label),
  }
}

/** Entries that are offered: as many as fit on a screen, and what people look at is recent. */
const RECENT = 20

/** Reads the words of a profile. Makes none. */
async function findWords(shell: Shell, flags: Flags, kind: WordKind): Promise<readonly string[]> {
  // Where several instances run, this is how one is named.
  if (kind === 'profiles') return listProfiles(openSettings(shell, flags).home)
  const attached = await attach(shell, flags, 'tolerant')
  const { provider } = attached.values
  if (kind === 'triggers') return triggers(provider)
  if (kind === 'events')
    return [...sentEvents(schemeOf(provider).events)].flatMap(([event, actions]) => [
      event,
      ...actions.map((action) => `${event}.${action}`),
    ])
  const numbers: string[] = []
  await using data = await openData(attached)
  if (data) for await (const { n } of new Journal(data.sql).select({ last: RECENT })) numbers.push(String(n))
  return ['last', ...numbers]
}

/** For bash 3.2 and later, whose `compopt` may be missing. */
function bashScript(): string {
  return String.raw`# bash completion for relay. Load it with: source <(relay completion bash)
_relay() {
  local IFS=$'\n' cur=${'$'}{COMP_WORDS[COMP_CWORD]}
  COMPREPLY=($(relay completion bash -- "${'$'}{COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${'$'}{COMPREPLY[0]-} == :files ]] || return 0
  compopt -o filenames 2>/dev/null
  COMPREPLY=("${'$'}{COMPREPLY[@]:1}" $(compgen -f -- "${'$'}{cur#=}"))
}
complete -F _relay relay
`
}

/** To be sourced after compinit, or saved as `_relay` in a folder of fpath. */
function zshScript(): string {
  return String.raw`#compdef relay
# zsh completion for relay. Load it with: source <(relay completion zsh)
_relay() {
  local -a offers=("${'$'}{(@f)$(relay completion zsh -- "${'$'}{(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ $PREFIX == --*=* ]] && compset -P '*='
  if [[ $offers[1] == :files ]]; then shift offers; _files; fi
  [[ -z $offers ]] || _describe relay offers
}
if [[ $funcstack[1] == _relay ]]; then _relay "$@"; else compdef _relay relay; fi
`
}

function fishScript(): string {
  return String.raw`# fish completion for relay. Load it with: relay completion fish | source
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
`
}
