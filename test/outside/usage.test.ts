import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { shared } from './fixture.js'

/** A machine without a code host, and with the files that the command lines name. */
const here = shared(async () => {
  const made = await place({ host: 'none' })
  const body = '{"action":"opened"}'
  const fixture = { relay: 1, provider: 'github', event: 'issues', delivery: 'id', headers: {}, body }
  writeFileSync(`${made.cwd}/a.json`, JSON.stringify(fixture))
  writeFileSync(`${made.cwd}/payload.json`, body)
  return made
})

const page = (usage: string): string =>
  `\nUsage: relay ${usage}\n(relay ${usage.replace(/ \[options\].*/, '')} --help says more)`
const COMMENT = page('comment [options] [target] [text]')
const MERGE = page('merge [options] [target]')
const REACT = page('react [options] [target] [reaction]')
const STICKY = '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'
const NO_TARGET = 'No target given. Give owner/repo#12, or --from'
const SINCE =
  '--since: must be a duration such as 1h, a day such as yesterday or monday, a time such as 2026-01-31T12:00, or now'
const MATCH = "Invalid match 'pull_*': write event or event.action, with * for all of a part"
const LISTS = '\n(relay --help lists the commands)'
const NO_RELAY =
  'No relay is running for profile default. Start it with relay serve, or name an address with --to'
const UNSAFE = "The provider's address must be https, unless it is on this machine"
const OF_SANDBOX =
  "cannot be used with --sandbox: the sandbox's own webhook sends every delivery already, and its log ends with it. Use the sandbox of another relay, with --provider sandbox and --provider-url"
const NOT_SET_UP =
  'Sign-in at https://github.com is not set up. Run relay setup, or set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth app with the callback http://127.0.0.1:8787/auth/github/callback'
const TO = '--to http://localhost:1'

/** By exit code and command line, which may begin with a variable, and in which ␣ is a space within an argument. */
const ERRORS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  1: {
    'replay a.json': NO_RELAY,
    'trigger push': NO_RELAY,
  },
  2: {
    sreve: `unknown command 'sreve'\n(Did you mean relay serve?)${LISTS}`,
    logout: `unknown command 'logout'\n(Did you mean relay revoke?)${LISTS}`,
    tail: `unknown command 'tail'\n(Did you mean relay log --follow?)${LISTS}`,
    resend: `unknown command 'resend'\n(Did you mean relay replay?)${LISTS}`,
    xyz: `unknown command 'xyz'${LISTS}`,
    'help logout': 'There is no command logout. Did you mean relay revoke?',
    'help xyz': 'There is no command xyz. relay help names the commands',
    'serve --prot 1': `unknown option '--prot'\n(Did you mean --port?)${page('serve [options]')}`,
    'serve --color blue': `option '--color <when>' argument 'blue' is invalid. Allowed choices are auto, always, never.${LISTS}`,
    'serve --port x': '--port: must be a whole number from 0 to 65535',
    'serve --provider gitea':
      'RELAY_PROVIDER_URL is not set. Set it to the address of your gitea, for example https://git.example.com',
    'serve --provider-url http://git.example.org': UNSAFE,
    'whoami --provider-url http://git.example.org': UNSAFE,
    'serve --provider-url https://user:password@git.example.org':
      '--provider-url: must not contain a user name or password',
    'whoami --provider-url https://git.example.org/?x=1':
      '--provider-url: must not contain a query or a fragment',
    'serve --sandbox --hook=octo/demo': `--hook ${OF_SANDBOX}`,
    'serve --sandbox --provider github':
      '--provider cannot be used with --sandbox, which is a code host of its own',
    'serve --sandbox --catch-up': `--catch-up ${OF_SANDBOX}`,
    show: `missing required argument 'entry'${page('show [options] <entry>')}`,
    'completion tcsh': `command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.${page('completion [options] <shell>')}`,

    'comment nonsense x':
      '"nonsense" is not an issue, pull request or comment. Give for example octo/demo#12, or its web address',
    'comment https://gitlab.com/octo/demo/issues/1 x':
      'The address is on https://gitlab.com, but this profile uses https://github.com. Give an address there, or owner/repo#12',
    'comment octo/demo#1 ␣': 'The text is empty',
    'comment octo/demo#1 -': 'The text is empty',
    comment: NO_TARGET,
    'comment --from 7 octo/demo#1 x': 'The target is given twice: as "octo/demo#1" and with --from 7',
    'comment octo/demo#1 x --sticky a␣key': STICKY,
    'comment octo/demo#1 x --sticky k-->': STICKY,
    'comment octo/demo#1 x --body-file y': 'The text is given twice: as an argument and with --body-file',
    'comment octo/demo#1':
      'No text given. Give it as an argument, with --body-file, or - to read standard input',
    'comment octo/demo#1 a b': `too many arguments for 'comment'. Expected 2 arguments but got 3.${COMMENT}`,
    'comment octo/demo#1 --body x': `unknown option '--body'${COMMENT}`,
    'comment --from': `option '--from <entry|->' argument missing${COMMENT}`,
    'comment octo/demo#1 x --user a␣b':
      '--user: must be 1–256 bytes without white space, control characters or "/"',
    'merge https://github.com/octo/demo/issues/2':
      'octo/demo#2 is an issue by its address. If it is a pull request, give octo/demo#2 as the target',
    merge: NO_TARGET,
    'merge octo/demo#2 --match-head abc1234':
      '--match-head: must be a full commit id of 40 or 64 hexadecimal digits',
    'merge octo/demo#2 --method octopus': `option '--method <method>' argument 'octopus' is invalid. Allowed choices are merge, squash, rebase.${MERGE}`,
    'react octo/demo#1 -2x': `unknown option '-2x'${REACT}`,
    'react octo/demo#1 -2':
      '"-2" is not a reaction. Give one of +1 👍, -1 👎, laugh 😄, confused 😕, heart ❤, hooray 🎉, rocket 🚀, eyes 👀',
    'react octo/demo#1':
      'No reaction given. Give one of +1, -1, laugh, confused, heart, hooray, rocket, eyes, or the emoji',

    'hook add octo': '"octo" is not a repository. Give for example octo/demo',
    'hook add octo/demo --url http://example.com/x': '--url: must be https, unless it is on this machine',
    'hook add octo/demo --events Push!':
      '--events: must be names of events, separated by commas: push,pull_request',
    'source add a␣b=stripe':
      '<scheme>: the name of a source is 1–32 letters a–z, digits or "-", and begins with a letter',
    'RELAY_STORE=memory log': 'RELAY_STORE is memory: only relay serve itself can read that journal',
    'inspect 0': '"0" is not an entry. Give its number, or last',
    'inspect #0': '"#0" is not an entry. Give its number, or last',
    'inspect 007': '"007" is not an entry. Give its number, or last',
    'log --event pull_*': MATCH,
    'log --repo demo': '--repo: must be owner/name',
    'log --last -1': '--last: must be a whole number',
    'log --since someday': SINCE,
    'log --since 2023-13-01': SINCE,
    'log --refused --event push': '--refused cannot be combined with --event',
    'wait pull_*': MATCH,
    'wait push --where a=b': '--where a=b: expected ==, != or ~ at character 2, before =b',
    'wait push --where ref␣~␣"x"␣||␣"y"':
      '--where ref ~ "x" || "y": expected one JSON string at character 7, before "x" || "y"',
    'wait push --timeout soon': '--timeout: must be a duration such as 30s or 5m',
    'wait push --since 0': SINCE,
    'show refused:x': '"refused:x" has no number. relay log --refused lists those there are',
    'verify payload.json':
      'payload.json: not a fixture but a bare payload, which holds no signature; to send it, give its event, as with --event push',
    'verify none.json': 'none.json: no such file or folder',
    replay:
      'Nothing to replay: give files, folders, -, entry numbers or last; or --last, --event, --since, --failed',
    [`replay nothing.json ${TO}`]: 'nothing.json: no such file or folder',
    'replay a.json --to example': '--to: must be an absolute http:// or https:// address',
    [`replay a.json ${TO} --expect 20`]: '--expect: must be a status such as 401, or a class such as 2xx',
    [`replay a.json ${TO} --set x`]: '--set: must be path=value, for example pull_request.number=7',
    [`replay a.json ${TO} --set action.x=1`]:
      'a.json: Cannot set a field: action is neither an object nor a list',
    [`replay a.json ${TO} --keep-signature --set a=1`]:
      '--keep-signature: cannot be combined with --set, which needs a new signature',
    [`replay a.json ${TO} --last 3`]: '--last: selects entries, so it cannot be combined with a.json',
    [`replay a.json ${TO} --secret-env NONE`]: '--secret-env: NONE is not set',
    'RELAY_WEBHOOK_SECRET= trigger push --to http://127.0.0.1:1':
      'There is no webhook secret to sign with: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env',
    'RELAY_WEBHOOK_SECRET= verify a.json':
      'There is no webhook secret to verify with: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env',
    trigger: 'No event given. relay trigger --list lists them',
    [`trigger nonsense ${TO}`]: 'There is no template for "nonsense": relay trigger --list has them',
    [`trigger pul_request ${TO}`]:
      'There is no template for "pul_request" (did you mean pull_request?): relay trigger --list has them',
    'trigger stripe/invoice.payd --print':
      'There is no example of "invoice.payd" (did you mean invoice.paid?): relay trigger --list --source stripe has them, and --body sends a body of your own',
    'trigger push --print --provider svn': '--provider: must be one of github, gitea, gitlab, sandbox',

    'login --no-browser': NOT_SET_UP,
    'RELAY_STORE=memory login --no-browser':
      '--store memory would lose the token as soon as this command ends',
    'login --device': NOT_SET_UP,
    'login --device --with-token': '--device and --with-token are two ways to sign in. Give one of them',
    'setup --no-browser --app-hook':
      'The code host cannot reach http://127.0.0.1:8787. Start relay serve --tunnel first, or give --public-url',
    'config --reveal prot': '--reveal: no setting is called prot (did you mean port?)',
    'config --reveal webhookSecre':
      '--reveal: no setting is called webhookSecre (did you mean webhookSecret?)',
    'config --reveal secret': '--reveal: no setting is called secret (did you mean webhookSecret?)',
    'config --reveal zzz': '--reveal: no setting is called zzz',
    'config --reveal clientId': 'clientId is not set',
  },
  3: {
    'replay a.json --to http://127.0.0.1:1': '1 of 1 answers were not as expected',
    'trigger push --to http://127.0.0.1:1': '1 of 1 answers were not as expected',
  },
}

describe.each(Object.entries(ERRORS))('exit %s', (code, lines) => {
  it.each(Object.entries(lines))('%s', async (line, message) => {
    const words = line.split(' ').map((word) => word.replaceAll('␣', ' '))
    const [variable = '', value = ''] = words[0]?.startsWith('RELAY_')
      ? (words.shift()?.split('=') ?? [])
      : []
    const { out, err, ...ended } = await here.runWith({ env: { [variable]: value } }, ...words)
    expect({ code: ended.code, err: err.replace(`${here.cwd}/`, '') }).toEqual({
      code: Number(code),
      err: `error: ${message}\n`,
    })
    expect(out === '').toBe(code !== '3')
  })
})
