import { Argument, Command, Option } from 'commander'
import { describe, expect, it } from 'vitest'
import { complete, type WordKind } from '../../src/cli/commands/completion.js'

/** A program with every kind of place. */
function program(): Command {
  const relay = new Command('relay')
    .option('--profile <name>', 'named set of settings (env: RELAY_PROFILE)')
    .addOption(new Option('--color <when>', 'use colors').choices(['auto', 'always', 'never']))
    .option('-q, --quiet', 'print less')
  relay
    .command('serve')
    .summary('run the service')
    .option('--tunnel [url]', 'a tunnel')
    .option('--store <kind>')
  relay.command('show').argument('<entry>').option('--body', 'print the body')
  relay.command('replay').argument('[file...]').option('--event <match>', 'only this event')
  relay.command('export').argument('<entry>').option('--out <file>', 'write here')
  relay.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
  const routes = relay.command('routes')
  routes.command('test').argument('<entry>').option('--json')
  return relay
}

const WORDS: Readonly<Record<WordKind, readonly string[]>> = {
  entries: ['last', '12', '11'],
  events: ['push', 'issues'],
  profiles: ['default', 'prod'],
  triggers: ['push'],
}

/** What is offered after a line that begins with `relay `, and the profile whose words it was. */
async function offered(line: string): Promise<string[]> {
  const offers = await complete(program(), line.split(' '), async (kind, profile) =>
    WORDS[kind].map((word) => (profile === undefined ? word : `${profile}:${word}`)),
  )
  return offers.map(({ word }) => word)
}

describe('completion', () => {
  it.each<[string, string[]]>([
    ['', ['serve', 'show', 'replay', 'export', 'completion', 'routes']],
    ['s', ['serve', 'show']],
    ['xx', []],
    ['--q', ['--quiet']],
    ['--color ', ['auto', 'always', 'never']],
    ['--color=al', ['always']],
    ['--profile p', ['prod']],
    ['serve --', ['--tunnel', '--store', '--profile', '--color', '--quiet', '--help']],
    ['serve --store ', ['file', 'keychain', 'memory']],
    ['serve --tunnel ', []],
    ['serve --tunnel --st', ['--store']],
    ['show ', ['last', '12', '11']],
    ['show --profile prod ', ['prod:last', 'prod:12', 'prod:11']],
    ['--profile=prod show ', ['prod:last', 'prod:12', 'prod:11']],
    ['--profile serve show 1', []],
    ['show 12 ', []],
    ['show --body 1', ['12', '11']],
    ['replay 12 ', [':files', 'last', '12', '11']],
    ['replay --event pu', ['push']],
    ['export --out ', [':files']],
    ['export --out=', [':files']],
    ['completion b', ['bash']],
    ['routes ', ['test']],
    ['routes --quiet test 1', ['12', '11']],
  ])('relay %s', async (line, words) => {
    expect(await offered(line)).toEqual(words)
  })

  it('names what an option does without its notes, as one line', async () => {
    const offers = await complete(program(), ['--prof'], async () => [])
    expect(offers).toEqual([{ word: '--profile', help: 'named set of settings' }])
  })
})
