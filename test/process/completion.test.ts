import { shared } from '../outside/fixture.js'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { PROGRAM } from '../kit/run.js'
import { commandNames } from '../outside/help-pages.js'

/** A folder with one file, for places where files are offered. */
const cwd = emptyFolder()
writeFileSync(path.join(cwd, 'note.md'), '')

/** The built program, as `relay`. */
const bin = emptyFolder()
writeFileSync(path.join(bin, 'relay'), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`)
chmodSync(path.join(bin, 'relay'), 0o755)

/** Twelve deliveries in the default profile, seven in prod; nothing runs. */
const here = shared(() => place({ host: 'none', env: { RELAY_PROFILE: undefined } }))
beforeAll(async () => {
  const named = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `${i}` }))
  await fill(here, named(12))
  await fill(here, named(7), 'prod')
})

/** Runs a shell that has this program, and returns what it prints. */
async function shell(command: string, ...args: string[]): Promise<string> {
  const home = emptyFolder()
  mkdirSync(path.join(home, '.config'))
  const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: home, TERM: 'dumb', RELAY_HOME: here.home }
  return (await promisify(execFile)(command, args, { cwd, env })).stdout
}

/** The file of a completion script. */
async function script(kind: string): Promise<string> {
  const file = path.join(emptyFolder(), `relay.${kind}`)
  writeFileSync(file, await shell('relay', 'completion', kind))
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
  ['relay serve --tunnel --store ', ['file', 'keychain', 'memory']],
  ['relay --color=al', ['always']],
  ['relay --profile serve merge --method ', ['merge', 'squash', 'rebase']],
  ['relay --profile x completion ', ['bash', 'zsh', 'fish']],
  ['relay --profile=x completion b', ['bash']],
  ['relay react octo/demo#1 ', ['+1', '-1', 'laugh', 'confused', 'heart', 'hooray', 'rocket', 'eyes']],
  ['relay react --user ada octo/demo#1 h', ['heart', 'hooray']],
  ['relay config --reveal webhook', ['webhookSecret', 'webhookSecretPrevious']],
  ['relay comment octo/demo#1 --body-file ', ['note.md']],
  ['relay comment --body-file note.md --he', ['--help']],
  ['relay routes ', ['add', 'remove', 'test']],
  ['relay routes test 1', ['12', '11', '10', '1']],
  ['relay routes --json test 11', ['11']],
  ['relay routes test last --ig', ['--ignore']],
  ['relay --profile prod show ', ['last', '7', '6', '5', '4', '3', '2', '1']],
  ['relay show --profile=prod 7', ['7']],
  ['relay routes --profile prod test 7', ['7']],
  ['relay show l', ['last']],
  ['relay show 12 ', []],
  ['relay export 11', ['11']],
  ['relay replay n', ['note.md']],
  ['relay replay l', ['last']],
  ['relay trigger issues.o', ['issues.opened']],
  ['relay wait pus', ['push']],
  ['relay log --event issues.o', ['issues.opened']],
  ['relay serve --ignore issues.o', ['issues.opened']],
  ['relay --profile p', ['prod']],
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

describe('the offer of an entry', () => {
  const asked = async (kind: string): Promise<string[]> =>
    words(await shell('relay', 'completion', kind, '--', '--profile', 'prod', 'show', ''))

  it('describes it where the shell shows that', async () => {
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`
    const zsh = new RegExp(String.raw`^7:${time} push`)
    const [last, newest, ...others] = await asked('zsh')
    expect([last, newest, others.length]).toEqual(['last:the newest entry', expect.stringMatching(zsh), 6])
    const fish = await asked('fish')
    expect(fish[1]).toMatch(new RegExp(String.raw`^7\t${time} push`))
    expect((await asked('bash'))[1]).toBe('7')
  })

  it('has nothing that rewrites the terminal, or ends the line', async () => {
    await fill(here, [{ id: 'x', event: 'a\u001b[2J\n\tb' }], 'odd')
    const offers = words(await shell('relay', 'completion', 'fish', '--', '--profile', 'odd', 'show', ''))
    expect(offers).toHaveLength(2)
    expect(offers[1]?.split('\t')).toHaveLength(2)
    expect(offers.join('')).not.toContain('\u001b')
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
