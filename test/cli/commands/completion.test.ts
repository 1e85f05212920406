import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { main } from '../../../src/cli/main.js'
import { createProgram } from '../../../src/cli/program.js'
import { REACTIONS } from '../../../src/providers/provider.js'
import { STORE_KINDS } from '../../../src/base/settings.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { triggers } from '../../../src/sandbox/synthesize.js'
import { exampleShell } from '../journal-rig.js'
import { shell, startServed } from '../rig.js'
import { fixtureOf } from '../../../src/testing/index.js'
import { describeWith } from '../../helpers/needs.js'

async function script(shell: string): Promise<string> {
  const { context, out } = testContext()
  expect(await main(['completion', shell], context)).toBe(0)
  const file = path.join(emptyFolder(), `relay.${shell}`)
  writeFileSync(file, out())
  return file
}

/** A folder with one file, for places where files are offered. */
const cwd = emptyFolder()
writeFileSync(path.join(cwd, 'note.md'), '')

/** A program called relay that knows the words of a profile. */
const bin = emptyFolder()
writeFileSync(
  path.join(bin, 'relay'),
  `#!/bin/sh
case "$*" in
  'completion '*' --words entries') printf '%s\\n' last 12 11 ;;
  'completion '*' --words events') printf '%s\\n' push issues issues.opened ;;
  'completion '*' --words triggers') printf '%s\\n' push issues.opened ;;
  'completion '*' --words entries --profile=prod') printf '%s\\n' last 7 ;;
  'completion '*' --words profiles') printf '%s\\n' default sandbox ;;
  *) echo "unexpected: $*" ;;
esac
`,
)
chmodSync(path.join(bin, 'relay'), 0o755)

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: { PATH: `${bin}:${process.env['PATH']}`, HOME: cwd, TERM: 'dumb' },
  })

const COMMANDS = createProgram(testContext().context).commands.map((command) => command.name())

const CASES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['relay ', COMMANDS],
  ['relay se', ['serve', 'setup']],
  ['relay xx', []],
  ['relay --verb', ['--verbose']],
  ['relay serve --pro', ['--provider', '--provider-url', '--profile']],
  ['relay serve --store ', STORE_KINDS],
  ['relay serve --port ', []],
  ['relay --color=al', ['always']],
  ['relay --profile serve merge --method ', ['merge', 'squash', 'rebase']],
  ['relay --profile x completion ', ['bash', 'zsh', 'fish']],
  ['relay --profile=x completion b', ['bash']],
  ['relay react octo/demo#1 ', REACTIONS],
  ['relay react --user ada octo/demo#1 h', ['heart', 'hooray']],
  ['relay config --reveal webhook', ['webhookSecret', 'webhookSecretPrevious']],
  ['relay comment octo/demo#1 --body-file ', ['note.md']],
  ['relay comment --body-file note.md --he', ['--help']],
  ['relay routes ', ['test']],
  ['relay routes test ', ['last', '12', '11']],
  ['relay routes --json test 1', ['12', '11']],
  ['relay routes test last --ig', ['--ignore']],
  ['relay --profile prod show ', ['last', '7']],
  ['relay show --profile=prod ', ['last', '7']],
  ['relay routes --profile prod test ', ['last', '7']],
  ['relay show ', ['last', '12', '11']],
  ['relay export 1', ['12', '11']],
  ['relay replay ', ['last', '12', '11', 'note.md']],
  ['relay trigger i', ['issues.opened']],
  ['relay wait ', ['push', 'issues', 'issues.opened']],
  ['relay log --event p', ['push']],
  ['relay serve --ignore iss', ['issues', 'issues.opened']],
  ['relay --profile s', ['sandbox']],
]

const sorted = (words: Iterable<string>): string[] => [...new Set(words)].toSorted()
const linesOf = (text: string): string[] => text.split('\n').filter(Boolean)

const scripts = { bash: await script('bash'), zsh: await script('zsh'), fish: await script('fish') }

describe('in bash', () => {
  const file = scripts.bash
  const quote = (word: string) => `'${word}'`

  it.each(CASES)('%j', (line, offered) => {
    const words = line.split(/ |(=)/).filter((word) => word !== undefined)
    const typed = `COMP_WORDS=(${words.map(quote).join(' ')}); COMP_CWORD=${words.length - 1}`
    const out = run(
      'bash',
      '--norc',
      '-euc',
      `source ${file}; ${typed}; _relay || true; printf '%s\\n' "\${COMPREPLY[@]-}"`,
    )
    expect(sorted(linesOf(out))).toEqual(sorted(offered))
  })

  it('is bound to relay', () => {
    expect(run('bash', '--norc', '-c', `source ${file}; complete -p relay`)).toBe(
      'complete -F _relay relay\n',
    )
  })
})

describeWith('zsh', 'in zsh', () => {
  it.each(CASES)('%j', (line, offered) => {
    const hits = path.join(emptyFolder(), 'hits')
    writeFileSync(hits, '')
    run('zsh', '-f', path.resolve('test/helpers/zsh-complete.zsh'), scripts.zsh, line, hits)
    expect(sorted(linesOf(readFileSync(hits, 'utf8')))).toEqual(sorted(offered))
  })
})

describeWith('fish', 'in fish', () => {
  it.each(CASES)('%j', (line, offered) => {
    const out = run('fish', '--no-config', '-c', `source ${scripts.fish}; complete -C '${line}'`)
    const words = linesOf(out).map((text) => text.split('\t')[0]?.replace(/^--color=/, '') ?? '')
    expect(sorted(words)).toEqual(sorted(offered))
  })
})

describe('relay completion', () => {
  it('knows three shells', async () => {
    const { context, out, err } = testContext()
    expect(await main(['completion', 'tcsh'], context)).toBe(2)
    expect({ out: out(), err: err() }).toEqual({
      out: '',
      err: "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\nUsage: relay completion [options] <shell>\n(relay completion --help says more)\n",
    })
  })

  it('offers what the profile has, and makes none', async () => {
    const here = await exampleShell()
    const words = async (kind: string): Promise<string[]> =>
      (await here.run(['completion', 'bash', '--words', kind])).out.trim().split('\n')
    expect(await words('entries')).toEqual(['last', '5', '4', '3', '2', '1'])
    expect(await words('profiles')).toEqual(['default'])
    expect(await words('triggers')).toEqual(triggers('github'))
    expect(await words('events')).toEqual(expect.arrayContaining(['push', 'issues', 'issues.opened']))
    const empty = shell()
    expect((await empty.run(['completion', 'bash', '--words', 'entries'])).out).toBe('last\n')
    expect((await empty.run(['completion', 'bash', '--words', 'profiles'])).out).toBe('')
    expect(readdirSync(empty.home)).toEqual([])
  })

  it('offers what the one running instance has', async () => {
    await using served = await startServed()
    await served.serving.deliver(fixtureOf('push'))
    const words = async (kind: string): Promise<string[]> =>
      (await served.shell.run(['completion', 'zsh', '--words', kind])).out.trim().split('\n')
    expect(await words('entries')).toEqual(['last', '1'])
    expect(await words('triggers')).toEqual(triggers('sandbox'))
  })

  it('wraps its script for a program', async () => {
    const { context, out } = testContext()
    expect(await main(['completion', 'fish', '--json'], context)).toBe(0)
    expect(JSON.parse(out())).toEqual({
      v: 1,
      shell: 'fish',
      script: readFileSync(scripts.fish, 'utf8').trimEnd(),
    })
  })
})
