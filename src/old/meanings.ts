import { suggest } from '../base/suggest.js'

/** What other programs call things, and the command line that does it here. */
const MEANINGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    comment: 'reply answer say',
    config: 'settings configure env environment set get options',
    doctor: 'check diagnose health status info debug',
    export: 'save dump record download fixture',
    log: 'list ls history deliveries events entries requests ps',
    'log --follow': 'tail follow watch stream logs',
    login: 'signin auth authorize authenticate connect',
    react: 'reaction emoji like',
    replay: 'resend redeliver retry repeat',
    revoke: 'logout signout disconnect unauthorize',
    routes: 'targets forwards',
    serve: 'start run up listen server receive',
    'serve --forward': 'forward proxy',
    'serve --sandbox': 'sandbox demo',
    'serve --tunnel': 'tunnel expose smee',
    setup: 'init register install',
    show: 'view inspect cat describe open',
    trigger: 'send fire emit simulate fake test ping',
    verify: 'validate signature',
    wait: 'await expect',
    whoami: 'who me user account',
  }).flatMap(([line, words]) => words.split(' ').map((word) => [word, line])),
)

/** The command line that was probably meant by an unknown command, by its meaning or its spelling. */
export function meantCommand(word: string, commands: readonly string[]): string | undefined {
  const line = Object.hasOwn(MEANINGS, word) ? MEANINGS[word] : suggest(word, commands)
  return line === undefined ? undefined : `relay ${line}`
}
