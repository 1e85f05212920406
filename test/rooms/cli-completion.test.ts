import { Argument, Command, Option } from 'commander'
import { expect, it } from 'vitest'
import { complete, type WordKind } from '../../src/cli/commands/completion.js'

const program = new Command('relay')
  .option('--profile <name>', 'named set of settings (env: RELAY_PROFILE)')
  .addOption(new Option('--color <when>', 'use colors').choices(['auto', 'always', 'never']))
  .option('-q, --quiet', 'print less')
program.command('serve').option('--tunnel [url]').option('--store <kind>')
program.command('show').argument('<entry>').option('--body')
program.command('replay').argument('[file...]')
program.command('export').argument('<entry>').option('--out <file>')
program.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
program.command('routes').command('test').argument('<entry>').option('--json')

const WORDS: Readonly<Record<WordKind, readonly string[]>> = {
  entries: ['last', '12', '11'],
  events: ['push', 'issues'],
  profiles: ['default', 'prod'],
  sources: ['stripe'],
  triggers: ['push'],
}

it.each<[string, string[]]>([
  ['', ['serve', 'show', 'replay', 'export', 'completion', 'routes']],
  ['--color ', ['auto', 'always', 'never']],
  ['serve --', ['--tunnel', '--store', '--profile', '--color', '--quiet', '--help']],
  ['serve --tunnel ', []],
  ['serve --tunnel --st', ['--store']],
  ['--profile=prod show ', ['prod:last', 'prod:12', 'prod:11']],
  ['--profile serve show 1', []],
  ['show 12 ', []],
  ['show --body 1', ['12', '11']],
  ['replay 12 ', [':files', 'last', '12', '11']],
  ['export --out=', [':files']],
  ['routes --quiet test 1', ['12', '11']],
])('completion of relay %s', async (line, words) => {
  const offers = await complete(program, line.split(' '), async (kind, profile) =>
    WORDS[kind].map((word) => (profile === undefined ? word : `${profile}:${word}`)),
  )
  expect(offers.map(({ word }) => word)).toEqual(words)
})

it('completion names what an option does without its notes, as one line', async () => {
  const offers = await complete(program, ['--prof'], async () => [])
  expect(offers).toEqual([{ word: '--profile', help: 'named set of settings' }])
})
