import { homedir } from 'node:os'
import type { Commands, FlagSpec } from '../command.js'
import { keysOf, SETTING_NAMES, userFile } from '../settings/table.js'
import { OPTIONAL_REPOSITORY, REPOSITORY, USER_COMMAND } from './signing-in.js'

const HOOK_COMMAND = { ...USER_COMMAND, args: [REPOSITORY] } as const
const HOOK_URL: FlagSpec = [
  '--url <url>',
  "the hook's address",
  { defaultText: "the tunnel's, else the public address with /webhook" },
]

/** The settings that `relay doctor` has a flag for, to try another value in this one diagnosis. */
const DOCTOR_FLAGS = [
  'user',
  'provider',
  'providerUrl',
  'port',
  'host',
  'publicUrl',
  'baseUrl',
  'store',
] as const
const SOURCE_ENV = ['sources', 'home', 'store', 'tokenKey'] as const
const ALL_SETTINGS = SETTING_NAMES.filter((name) => name !== 'profile')
const SHELLS = ['bash', 'zsh', 'fish'] as const

export const SETUP: Commands = {
  setup: {
    summary: 'register relay at the code host, for signing in',
    description: `Registers relay at the code host and stores the client in the profile. At GitHub, a page in your browser leads to creating
an App. At Gitea and Forgejo, relay asks for an access token, registers an OAuth application with it, and forgets it. Asks
before it replaces a client. Ends with the checks of relay doctor.`,
    examples: `relay setup
relay setup --app-hook   receive from all repositories of the App
relay setup --provider gitea --provider-url https://git.example.com < token.txt
relay setup --oauth-app  an OAuth app instead, registered by hand`,
    options: [
      ['--app-hook', "let the App's own webhook send deliveries here"],
      ['--org <name>', 'organization that will own the App (default: your account)'],
      ['--oauth-app', 'show the values of an OAuth app to register, then ask for its id and secret'],
      ['--no-browser', 'print the address instead of opening it'],
      ['--yes', 'replace a client that an earlier setup stored, without asking'],
    ],
    settings: ['provider', 'providerUrl', 'port', 'host', 'publicUrl', 'store'],
    env: ['clientId', 'clientSecret', 'webhookSecret', 'home', 'user'],
    exits: [[4, 'the access token is not accepted'], [7, 'no App was registered within 15 minutes'], 8, 130],
    load: async () => (await import('../commands/setup.js')).runSetup,
  },

  hook: {
    ...USER_COMMAND,
    settings: [],
    summary: "manage a repository's hooks",
    description: `Makes the code host send a repository's deliveries here, as the signed-in user. relay serve --hook does the same while it
runs.`,
    examples: 'relay hook add octo/demo\nrelay hook list octo/demo',
    subcommands: {
      add: {
        ...HOOK_COMMAND,
        summary: 'create a hook, or repair it',
        description: `Creates the repository's hook with content type application/json and the profile's webhook secret. If one already leads
here, or this profile created one before, repairs that one instead.`,
        examples: 'relay hook add octo/demo\nrelay hook add octo/demo --events push,pull_request',
        options: [
          HOOK_URL,
          ['--events <names>', 'only these events, separated by commas', { defaultText: 'every event' }],
        ],
        env: [...HOOK_COMMAND.env, 'webhookSecret', 'publicUrl'],
        load: async () => (await import('../commands/hook.js')).runAdd,
      },
      list: {
        ...HOOK_COMMAND,
        summary: "list a repository's hooks",
        description: `Lists all hooks of the repository with the last answer to each, and marks those that lead here. Without a repository,
lists the hooks that this profile created.`,
        examples: 'relay hook list\nrelay hook list octo/demo --json | jq .url',
        args: [OPTIONAL_REPOSITORY],
        load: async () => (await import('../commands/hook.js')).runList,
      },
      test: {
        ...HOOK_COMMAND,
        summary: 'send a ping through the hook',
        description: `Makes the code host send a ping (Gitea: a push of the last commit) and waits up to 30 seconds until it is in the journal.
Needs a running relay serve.`,
        examples: 'relay hook test octo/demo',
        exits: [4, 6, 7, 8, 130],
        load: async () => (await import('../commands/hook.js')).runTest,
      },
      remove: {
        ...HOOK_COMMAND,
        summary: 'remove the hooks that lead here',
        description: 'Removes the hooks of the repository that lead here, or to --url. Others stay.',
        examples: `relay hook remove octo/demo
relay hook remove octo/gone --local  the repository was deleted`,
        options: [HOOK_URL, ['--local', 'forget the hook here, and ask the code host nothing']],
        exits: [4, 6, 8, 130],
        load: async () => (await import('../commands/hook.js')).runRemove,
      },
    },
  },

  source: {
    summary: 'manage senders other than the code host',
    description: `Manages the senders other than the code host, such as Stripe, Slack or GitLab. A source is a name and a scheme, which says
how its deliveries are signed. Its address is POST /webhook/<name>. The schemes are standard, stripe,
slack, gitlab, linear, shopify, bitbucket, sentry, pagerduty, hmac, token, none, github, gitea.`,
    examples: `relay source add stripe
relay source list
relay serve --source billing=stripe --exec 'billing/invoice.*=./on-invoice.sh'`,
    env: SOURCE_ENV,
    details: () => [
      'Secrets in variables, instead of the profile:',
      [
        ['RELAY_SOURCE_STRIPE_SECRET', 'of the source stripe; other names in capitals too, with _ for -'],
        ['RELAY_SOURCE_STRIPE_SECRET_PREVIOUS', 'the secret before it, accepted during rotation'],
      ],
    ],
    subcommands: {
      add: {
        summary: 'store the secret of a source',
        description: `Reads the secret that the sender shows, from a prompt that does not show it or from standard input, and stores it in the
profile with the scheme. relay serve then receives from the source. A secret that it replaces is accepted too, until the next
one replaces it.`,
        examples: `relay source add stripe
relay source add billing=stripe < secret.txt
relay source add 'shop=hmac header=X-Shop-Signature prefix=sha256='`,
        args: [['<scheme>', 'scheme, name=scheme, or the name of a source that is there']],
        env: SOURCE_ENV,
        exits: [130],
        load: async () => (await import('../commands/source.js')).runAdd,
      },
      list: {
        summary: 'list the sources',
        description: `Lists the sources with scheme, address, where the secret comes from, the last delivery, and the last request that the
running relay serve refused.`,
        examples: `relay source list
relay source list --json | jq -r .address
relay source list --reveal stripe  its secret`,
        options: [['--reveal <source>', 'print only the secret of this source']],
        env: SOURCE_ENV,
        load: async () => (await import('../commands/source.js')).runList,
      },
      remove: {
        summary: 'remove a source and its secrets',
        description:
          'Removes what relay source add stored. The deliveries of the source stay in the journal.',
        examples: 'relay source remove stripe',
        args: [['<source>', 'its name']],
        env: SOURCE_ENV,
        load: async () => (await import('../commands/source.js')).runRemove,
      },
    },
  },

  config: {
    summary: 'show the settings and where each comes from',
    description: `Shows every setting, its value, and where it comes from. A flag wins over the environment, which wins over .env in the
working folder, the project's relay.json, your own config.json, what relay setup stored, what the profile was last served
with, and the default. Where a running relay serve has another value, commands use that one. Secrets are masked.`,
    examples: `relay config
relay config --json | jq .settings.port
relay config --reveal webhookSecret  the secret to enter at the code host`,
    details: (context) => [
      'Files:',
      [
        ['.env', 'in the working folder: variables of settings that relay.json can set, and secrets'],
        ['relay.json', `in the working folder or above it in its checkout: ${keysOf('project').join(', ')}`],
        [
          userFile(context).replace(homedir(), '~'),
          'every setting, secrets as <name>File; and "profiles": {"<profile>": {…}}',
        ],
      ],
    ],
    options: [['--reveal <name>', 'print only the value of this setting, even a secret']],
    env: ALL_SETTINGS,
    load: async () => (await import('../commands/config.js')).runConfig,
  },

  profiles: {
    summary: 'list the profiles on this machine',
    description: `Lists the profiles in the data folder: what each is for, where its tokens are, its size, and whether its relay serve runs.
Changes nothing.`,
    examples: `relay profiles
relay profiles --json | jq -r 'select(.running) | .name'`,
    env: ['home'],
    load: async () => (await import('../commands/profiles.js')).runProfiles,
  },

  reset: {
    summary: 'remove a profile with all its data',
    description: `Removes a profile: its journal, its tokens and its webhook secret. It first prints what will be removed and asks for
confirmation, then revokes the tokens at the code host; if that fails, it removes nothing else. Stop relay serve first.`,
    examples: 'relay reset\nrelay reset --profile sandbox --yes',
    options: [
      ['--yes', 'do not ask for confirmation'],
      ['--local', 'do not revoke tokens at the code host'],
    ],
    env: ['clientId', 'clientSecret', 'home', 'store'],
    exits: [6, [8, 'the code host did not revoke a token; the profile stays'], 130],
    load: async () => (await import('../commands/profiles.js')).runReset,
  },

  doctor: {
    summary: 'diagnose problems and suggest fixes',
    description: `Checks what a profile needs, such as the database, the tunnel, the OAuth client, the token and the hooks. Each line starts
with "ok", with "x" for a problem, or with "-" for a check that does not apply; a problem is followed by its fix. Changes
nothing, and sends the token only to the code host it came from.`,
    examples: `relay doctor
relay doctor --profile sandbox
relay doctor --json | jq '.checks[] | select(.state == "fail")'`,
    settings: DOCTOR_FLAGS,
    env: ALL_SETTINGS.filter((name) => !DOCTOR_FLAGS.some((flag) => flag === name)),
    exits: [[0, 'no problem found'], [1, 'a problem was found'], 130],
    load: async () => (await import('../commands/doctor.js')).runDoctor,
  },

  completion: {
    summary: 'print a completion script for your shell',
    description: `Prints a script that completes relay's commands, flags and their values in your shell. Put the line for your shell into its
start-up file.`,
    examples: `source <(relay completion bash)  in ~/.bashrc
source <(relay completion zsh)   in ~/.zshrc, after compinit
relay completion fish | source   in ~/.config/fish/config.fish`,
    args: [['<shell>', SHELLS.join(', '), SHELLS]],
    takesMore: true,
    load: async () => (await import('../commands/completion.js')).runCompletion,
  },

  help: {
    summary: 'explain a command, or list the settings',
    description: `Prints the help of a command. "settings" lists every setting with its flag and its variable. Without a topic, names the
commands.`,
    examples: 'relay help\nrelay help serve\nrelay help routes test\nrelay help settings',
    args: [['[topic...]', 'command, or settings']],
    load: async () => (await import('../commands/help.js')).runHelp,
  },

  version: {
    summary: 'print the version',
    description: 'Prints the version of relay, as relay --version does.',
    examples: 'relay version\nrelay version --json',
    load: async () => (await import('../commands/help.js')).runVersion,
  },
}
