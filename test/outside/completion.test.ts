import { execFile } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { run } from '../kit/run.js'
import { bare, example, GITHUB_TRIGGERS } from './example.js'
import { commandNames } from './help-pages.js'

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

/** Runs a shell that has this program, and returns what it prints. */
async function shell(command: string, ...args: string[]): Promise<string> {
  const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: emptyFolder(), TERM: 'dumb' }
  return (await promisify(execFile)(command, args, { cwd, env })).stdout
}

/** The file of a completion script. */
async function script(kind: string): Promise<string> {
  const { code, out } = await run(['completion', kind])
  expect(code).toBe(0)
  const file = path.join(emptyFolder(), `relay.${kind}`)
  writeFileSync(file, out)
  return file
}

const CASES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['relay ', await commandNames()],
  ['relay se', ['serve', 'setup']],
  ['relay xx', []],
  ['relay --verb', ['--verbose']],
  ['relay serve --pro', ['--provider', '--provider-url', '--profile']],
  ['relay serve --store ', ['file', 'keychain', 'memory']],
  ['relay serve --port ', []],
  ['relay --color=al', ['always']],
  ['relay --profile serve merge --method ', ['merge', 'squash', 'rebase']],
  ['relay --profile x completion ', ['bash', 'zsh', 'fish']],
  ['relay --profile=x completion b', ['bash']],
  ['relay react octo/demo#1 ', ['+1', '-1', 'laugh', 'confused', 'heart', 'hooray', 'rocket', 'eyes']],
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

const words = (text: string): string[] => text.split('\n').filter(Boolean)
const sorted = (offered: readonly string[]): string[] => [...new Set(offered)].toSorted()

/** Each line with what it is offered, given a shell's answers to all of them, which a line of dots ends. */
function answered(out: string, read = words): (readonly [line: string, offered: string[]])[] {
  const answers = out.split('...\n')
  return CASES.map(([line], i) => [line, sorted(read(answers[i] ?? 'no answer'))])
}

const ANSWERS = CASES.map(([line, offered]) => [line, sorted(offered)])

describe('in bash', () => {
  const quote = (word: string): string => `'${word}'`

  it('offers what fits, in each place', async () => {
    const typed = CASES.map(([line]) => {
      const split = line.split(/ |(=)/).filter((word) => word !== undefined)
      return `ask ${split.map(quote).join(' ')}`
    })
    const ask = `ask() {
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
      _relay || true
      printf '%s\n' "\${COMPREPLY[@]-}" ; echo ...
    }`
    const all = [`source ${await script('bash')}`, ask, ...typed].join('\n')
    expect(answered(await shell('bash', '--norc', '-uc', all))).toEqual(ANSWERS)
  })

  it('is bound to relay', async () => {
    const asked = `source ${await script('bash')}; complete -p relay`
    expect(await shell('bash', '--norc', '-c', asked)).toBe('complete -F _relay relay\n')
  })
})

describeWith('zsh', 'in zsh', () => {
  it('offers what fits, in each place', async () => {
    const [lines = '', hits = ''] = ['lines', 'hits'].map((name) => path.join(emptyFolder(), name))
    writeFileSync(lines, CASES.map(([line]) => `${line}\n`).join(''))
    writeFileSync(hits, '')
    await shell('zsh', '-f', path.resolve('test/kit/zsh-complete.zsh'), await script('zsh'), lines, hits)
    expect(answered(readFileSync(hits, 'utf8'))).toEqual(ANSWERS)
  })
})

describeWith('fish', 'in fish', () => {
  it('offers what fits, in each place', async () => {
    const asked = CASES.map(([line]) => `complete -C '${line}'; echo ...`)
    const all = [`source ${await script('fish')}`, ...asked].join('\n')
    const out = await shell('fish', '--no-config', '-c', all)
    const read = (text: string): string[] =>
      words(text).map((line) => line.split('\t')[0]?.replace(/^--color=/, '') ?? '')
    expect(answered(out, read)).toEqual(ANSWERS)
  })
})

describe('relay completion', () => {
  it('knows three shells', async () => {
    expect(await run(['completion', 'tcsh'])).toEqual({
      code: 2,
      out: '',
      err: "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\nUsage: relay completion [options] <shell>\n(relay completion --help says more)\n",
    })
  })

  it('offers what the profile has, and makes none', async () => {
    await using here = await example()
    const words = async (kind: string): Promise<string[]> =>
      (await here.run('completion', 'bash', '--words', kind)).out.trim().split('\n')
    expect(await words('entries')).toEqual(['last', '5', '4', '3', '2', '1'])
    expect(await words('profiles')).toEqual(['default'])
    expect(await words('triggers')).toEqual(GITHUB_TRIGGERS)
    expect(await words('events')).toEqual(expect.arrayContaining(['push', 'issues', 'issues.opened']))
    await using empty = await bare()
    expect((await empty.run('completion', 'bash', '--words', 'entries')).out).toBe('last\n')
    expect((await empty.run('completion', 'bash', '--words', 'profiles')).out).toBe('')
    expect(readdirSync(empty.home)).toEqual([])
  })

  it('offers what the one running instance has', async () => {
    await using here = await place()
    const relay = await here.serve()
    await relay.deliver()
    const words = async (kind: string): Promise<string[]> =>
      (await here.run('completion', 'zsh', '--words', kind)).out.trim().split('\n')
    expect(await words('entries')).toEqual(['last', '1'])
    expect(await words('triggers')).toEqual(GITHUB_TRIGGERS)
  })

  it('wraps its script for a program', async () => {
    const { code, out } = await run(['completion', 'fish', '--json'])
    const text = (await run(['completion', 'fish'])).out.trimEnd()
    expect({ code, object: JSON.parse(out) }).toEqual({
      code: 0,
      object: { v: 1, shell: 'fish', script: text },
    })
  })
})
