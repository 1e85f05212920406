import { run } from '../kit/run.js'

/** A line of a help page's list: a command, an argument, a flag, a variable, and what is said of it. */
export interface HelpEntry {
  readonly term: string
  readonly text: string
}

/** What `relay --help` names besides commands. */
const NO_COMMANDS = new Set(['Examples', 'Options', 'Global Options'])

/** The help page of every command, by its name: `routes test`. That of relay itself has the name ''. */
export async function helpPages(): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>()
  const read = async (name: string): Promise<string> => {
    const { code, out } = await run([...name.split(' ').filter(Boolean), '--help'])
    if (code !== 0) throw new Error(`relay ${name} --help ended with ${code}`)
    pages.set(name, out)
    return out
  }
  for (const name of namesOn(await read(''))) {
    const subcommands = commandsOf(sectionsOf(await read(name)).get('Commands') ?? [])
    for (const subcommand of subcommands) await read(`${name} ${subcommand}`)
  }
  return pages
}

/** The commands that `relay --help` names. */
export async function commandNames(): Promise<string[]> {
  return namesOn((await run(['--help'])).out)
}

function namesOn(page: string): string[] {
  const groups = [...sectionsOf(page)].filter(([heading]) => !NO_COMMANDS.has(heading))
  return commandsOf(groups.flatMap(([, entries]) => entries))
}

/** The lists of a help page, by their headings. */
export function sectionsOf(page: string): Map<string, HelpEntry[]> {
  const [, ...sections] = page.split(/^([A-Z][\w ]*):$/m)
  const headings = sections.filter((_, i) => i % 2 === 0)
  return new Map(headings.map((heading, i) => [heading, entriesOf(sections[2 * i + 1] ?? '')]))
}

/** A list of a help page. What is said of a term may go on in the next lines. */
export function entriesOf(list: string): HelpEntry[] {
  const found = [...list.matchAll(/^ {2}(\S.*?)(?: {2,}(.*(?:\n {4,}.*)*))?$/gm)]
  return found.map(([, term = '', text = '']) => ({ term, text: text.replaceAll(/\n +/g, ' ') }))
}

function commandsOf(entries: readonly HelpEntry[]): string[] {
  return entries.flatMap(({ term }) => /^[a-z-]+(?= |$)/.exec(term) ?? [])
}
