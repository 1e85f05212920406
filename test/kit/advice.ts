import { expect } from 'vitest'
import { type Place, place, type Serving } from './place.js'
import type { StartOptions } from './run.js'

/** How a profile is served, and how its other commands name it. */
export const PROFILES = {
  default: { serve: [], named: [], name: 'default' },
  'default, named': { serve: ['--profile', 'default'], named: ['--profile', 'default'], name: 'default' },
  work: { serve: ['--profile', 'work'], named: ['--profile', 'work'], name: 'work' },
  sandbox: { serve: ['--sandbox'], named: [], name: 'sandbox' },
  'sandbox, named': { serve: ['--sandbox'], named: ['--profile', 'sandbox'], name: 'sandbox' },
  play: { serve: ['--sandbox', '--profile', 'play'], named: ['--profile', 'play'], name: 'play' },
} as const
export type Profile = (typeof PROFILES)[keyof typeof PROFILES]

/** The commands of the program, as it says them itself. */
export async function commandsOf(here: Place): Promise<readonly string[]> {
  const { out } = await here.run('completion', 'bash', '--', '')
  return out.split('\n').filter((line) => line !== '')
}

const VALUE = String.raw`(?:'[^']*'|<[^>]+>|[^\s,;"<]*[^\s,;".<)])`
const VALUED = '(?:profile|port|sandbox-port|host|forward|source|reveal|user|events|event|body)'
const ARGUMENT = String.raw`(?:<[^>]+>|refused:\d+|\d+|last|octo/demo|push|stripe)(?![\w/])`
const WORD = `(?:${ARGUMENT}|--${VALUED} ${VALUE}|--[a-z][a-z-]*)`
/** What names the program that runs, what was run before, or how a command is typed in general. */
const BEFORE = '(?<!running |Usage: |log of |last |only |what |another )'
const AFTER = '(?! (?:did not|runs without|itself|does not))'

/** What stands for a placeholder. */
const VALUES: Readonly<Record<string, string>> = {
  '<owner/repo>': 'octo/demo',
  '<scheme>': 'stripe',
  '<n>': '1',
  '<event>': 'push',
  '<file>': 'body.json',
}

/** The command lines that a text says to run, each as its words, without `relay`. @throws Error for a placeholder that nothing stands for */
export function adviceIn(texts: readonly string[], commands: readonly string[]): string[][] {
  const pattern = new RegExp(
    String.raw`${BEFORE}\brelay (?:${commands.join('|')})\b(?: (?:add|list|remove|test)\b)?${AFTER}(?: ${WORD})*`,
    'g',
  )
  const lines = texts.flatMap((text) => [...text.matchAll(pattern)].map(([line]) => line))
  return [...new Set(lines)].map((line) =>
    [...line.matchAll(/'([^']*)'|(\S+)/g)].slice(1).map(([word, quoted]) =>
      (quoted ?? word).replaceAll(/<[^>]+>/g, (placeholder) => {
        const value = VALUES[placeholder]
        if (value === undefined) throw new Error(`${line}: nothing stands for ${placeholder}`)
        return value
      }),
    ),
  )
}

/** On free ports, and with a tunnel that nothing answers. */
export function serve(here: Place, flags: readonly string[], over: StartOptions = {}): Promise<Serving> {
  const ports = flags.includes('--sandbox') ? ['--sandbox-port', '0'] : []
  const env = flags.includes('--tunnel') ? { RELAY_TUNNEL: 'http://127.0.0.1:9' } : {}
  return here.serveWith({ ...over, env }, ...flags, ...ports)
}

/** A machine without a code host. */
export const machine = (): Promise<Place> => place({ host: 'none' })

/** What is refused because something else is missing that the refusal names: a client, an address, a file, a consent. */
const MISSING = /RELAY_CLIENT_ID|not set up|needs no setup|fixed port|body\.json|--yes/

/** Runs what was advised. `serve` has to start the profile; nothing may be refused as wrong usage or settings. */
export async function follow(
  here: Place,
  advised: readonly string[][],
  { name }: Pick<Profile, 'name'>,
): Promise<void> {
  for (const [command = '', ...rest] of advised) {
    if (command !== 'serve') continue
    await using serving = await serve(here, rest)
    const { out } = await here.run('profiles', '--json')
    const running = out
      .split('\n')
      .flatMap((line): object[] => (line === '' ? [] : [JSON.parse(line)]))
      .flatMap((each) => (Object(each).running ? [Object(each).name] : []))
    expect({ command: rest, running }).toEqual({ command: rest, running: [name] })
    const { err } = await here.run('routes', '--profile', name)
    expect(err).not.toContain('No relay is running')
    await serving.stop()
  }
  for (const argv of advised) {
    if (argv[0] === 'serve') continue
    const env = { RELAY_PORT: '0' }
    // A sign-in waits for a browser.
    const end = AbortSignal.timeout(2000)
    const ran = await here.runWith({ env, stdin: 'whsec_c2VjcmV0', signal: end }, ...argv)
    const isRefused = ran.code === 2 && !MISSING.test(ran.err)
    expect({ argv, ...ran, isRefused }).toMatchObject({ argv, isRefused: false })
    expect(ran.err).not.toContain('There is no profile')
  }
}
