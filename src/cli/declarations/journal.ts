import { DELIVERY_STATUSES } from '../../journal/filter.js'
import type { ArgumentSpec, Commands, CommandSpec, FlagSpec } from '../command.js'
import { OPTIONAL_REPOSITORY, USER_COMMAND } from './signing-in.js'

const ENTRY: ArgumentSpec = ['<entry>', 'number of the entry, or last']
const SINCE = '1h (ago), 2026-01-31T12:00, or now'
const STORED = { env: ['home', 'store'], exits: [6] } as const

const REPO: FlagSpec = ['--repo <owner/name>', 'only deliveries of this repository']
const SOURCE: FlagSpec = ['--source <name>', 'only deliveries of this source; events are then its own']
const EVENTS = 'event or event.action, or source/event of another source; * matches any'
const TEXT: FlagSpec = ['--text <text>', 'only deliveries with this text in the payload, in any case']
const SECRET_ENV: FlagSpec = [
  '--secret-env <variable>',
  'variable that holds the webhook secret',
  { defaultText: 'RELAY_WEBHOOK_SECRET' },
]

const SEND = {
  options: [
    ['--to <url>', 'send to this URL, or port of this machine', { defaultText: 'the running relay serve' }],
    SECRET_ENV,
    ['--set <path=value>', 'change a field, its copies and addresses, and sign again', { repeatable: true }],
    ['--set-only <path=value>', 'the same, but change nothing else', { repeatable: true }],
    ['--tamper <part>', 'part to change after signing, to be rejected', { choices: ['signature', 'body'] }],
    ['--keep-id', 'send the recorded delivery id', { defaultText: 'a new id each time' }],
    ['--expect <status>', 'expected status: 2xx, 401, …', { default: '2xx' }],
    ['--stop', 'stop at the first unexpected status'],
  ],
  env: ['home', 'store', 'webhookSecret'],
  exits: [[3, 'a status was not the expected one'], 130],
} as const satisfies Partial<CommandSpec>

export const JOURNAL: Commands = {
  inspect: {
    summary: 'see deliveries in the browser',
    description: `Opens the inspector of the running relay serve in the browser: a page where deliveries appear as they come. It shows one
delivery with its payload, its signature and every attempt, forwards it again, sends an edited copy, and explains what was
refused. A code that works once opens it, and appears in no process list. It stays open for 24 hours, also when relay
restarts.`,
    examples: `relay inspect
relay inspect last
relay inspect --no-browser  print the address and the code, also over SSH`,
    args: [['[entry]', 'entry number, or last']],
    options: [['--no-browser', 'print the address and a code instead of opening it']],
    env: STORED.env,
    exits: [[1, 'no relay serve runs'], [7, 'the browser did not open the page within a minute'], 130],
    load: async () => (await import('../commands/inspect.js')).runInspect,
  },

  log: {
    summary: 'list deliveries and the state of their forwarding',
    description: `Lists the deliveries in the journal, oldest first: number, local time, event, repository, state of forwarding to each
target, and number of duplicates. Of another source than the code host, its name is before the event. Works with or without a running relay serve.`,
    examples: `relay log
relay log --event pull_request --event 'issues.*' --since 1h
relay log --failed -n 100 --json | jq .n
relay log -f --repo octo/demo
relay log --status waiting --text v1.2.0
relay log --source stripe --event 'invoice.*'
relay log --refused`,
    options: [
      ['--event <match>', EVENTS, { repeatable: true }],
      SOURCE,
      REPO,
      ['--since <when>', `only deliveries received since: ${SINCE}`],
      ['--until <when>', 'only deliveries received before'],
      ['--status <status>', 'only deliveries with this state', { choices: DELIVERY_STATUSES }],
      ['--failed', 'only deliveries that failed at a target'],
      TEXT,
      ['-n, --last <n>', 'the newest N', { default: '20' }],
      ['--refused', 'requests that were refused, with the reason; asks the running instance'],
      ['-f, --follow', 'print new deliveries and changes until Ctrl-C'],
    ],
    env: STORED.env,
    exits: [[0, 'success, also after Ctrl-C with --follow'], 6, 130],
    load: async () => (await import('../commands/log.js')).runLog,
  },

  show: {
    ...STORED,
    summary: 'show one delivery and the answers of its targets',
    description: `Shows one delivery: its headers in order, its body, and every attempt to forward it with the start of the target's
answer. For refused:3, shows the third request that the running instance refused, and why.`,
    examples: `relay show last
relay show 7 --body > body.json  the exact bytes
relay show 7 --json | jq .payload.action
relay show refused:3`,
    args: [['<entry>', 'number of the entry, or last, or refused:<number>']],
    options: [['--body', 'print only the exact bytes of the body; escaped on a terminal']],
    load: async () => (await import('../commands/show.js')).runShow,
  },

  export: {
    ...STORED,
    summary: 'write a delivery as a fixture',
    description: `Prints one delivery as a fixture: a JSON file with its headers and exact body, for use in tests. Headers with credentials
are left out. The payload is complete, and its signature is real. --redact makes a fixture to pass on: without signatures, with e-mail
addresses, tokens and what looks like a secret replaced, and with a key of its own that signs it when it is replayed. Read it before you
publish it: no program knows every secret.`,
    examples: `relay export last > push.json
relay export 7 --redact --out test/fixtures/push.json
relay export 7 --pretty --out test/fixtures/opened.json`,
    args: [ENTRY],
    options: [
      ['--out <file>', 'write to this file, which must not exist'],
      ['--redact', 'leave out signatures, replace addresses and secrets'],
      ['--pretty', 'the payload as readable JSON, if that keeps every byte of the body'],
      ['--force', 'overwrite the file'],
    ],
    load: async () => (await import('../commands/show.js')).runExport,
  },

  wait: {
    summary: 'wait for a delivery',
    description: `Waits until a delivery matches, and prints it, the first if several do. A delivery of the last 10 seconds counts too, so
that none is missed between an action and the wait. With --forwarded, also waits until forwarding to every target has
succeeded or failed. Without a running relay serve it ends at once, unless --timeout is given.`,
    examples: `relay wait issue_comment.created --timeout 1h
git push && relay wait push --where "after==$(git rev-parse HEAD)"
relay wait issue_comment --where 'comment.body ~ ^/ship'
relay trigger push && relay wait push --forwarded --timeout 30s
relay wait stripe/checkout.session.completed --timeout 10m
relay wait ping --since now --json | jq -r .payload.zen`,
    details: () => [
      'Where:',
      [
        ['a.b[0]==value', 'equals this text, number, true, false or null; quote it to mean text'],
        ['a.b!=value', 'does not equal it; a missing field is null'],
        ['a.b~pattern', 'matches the regular expression'],
      ],
    ],
    args: [['<match>', EVENTS]],
    options: [
      ['--where <expression>', 'payload must match this expression; all must match', { repeatable: true }],
      SOURCE,
      REPO,
      TEXT,
      ['--since <when>', `deliveries received since: ${SINCE}`, { default: '10s' }],
      ['--forwarded', 'wait until it was forwarded; exit 3 if that failed at a target'],
      ['--timeout <duration>', 'how long to wait', { defaultText: '5m while relay serve runs' }],
    ],
    env: STORED.env,
    exits: [[3, 'it failed at a target'], [7, 'nothing matched in time, or forwarding took longer'], 130],
    load: async () => (await import('../commands/wait.js')).runWait,
  },

  replay: {
    summary: 'send deliveries again',
    description: `Sends fixtures or deliveries of the journal to the running relay serve or to any URL. The recorded bytes and signature
are sent unchanged if the signature matches the secret of its source and the time that it covers is recent; otherwise the request
is signed again. The first 8 MiB of files are checked before anything is sent, each later file when it is sent.`,
    examples: `relay replay last
relay replay test/fixtures --to http://localhost:3000/hook
relay replay --event push --since 1h --stop
relay replay --failed --forwarded
relay replay opened.json --set pull_request.number=7
relay replay opened.json --tamper signature --expect 401
relay replay --source stripe --since 1h --to http://localhost:3000/stripe
echo '{"zen":"ok"}' | relay replay - --event ping`,
    args: [['[file...]', 'fixtures, folders, -, entry numbers, or last']],
    options: [
      [
        '--event <match>',
        'only entries of this event; the event of files that name none',
        { repeatable: true },
      ],
      ['--source <name>', 'only entries of this source; the source of files'],
      ['--repo <owner/name>', 'only entries of this repository'],
      ['--since <when>', 'only entries received since: 1h (ago), 2026-01-31T12:00'],
      ['--failed', 'only to targets at which an entry failed (implies --keep-id)'],
      ['--last <n>', 'the newest N'],
      ['--forwarded', 'wait until all were forwarded; exit 3 if that failed at a target'],
      ['--keep-signature', 'send the recorded signature and id, whatever their age'],
      ...SEND.options,
    ],
    env: ['provider', ...SEND.env],
    exits: [
      [3, 'a status was not the expected one, or forwarding failed at a target'],
      6,
      [7, 'forwarding took over 5 minutes'],
      130,
    ],
    load: async () => (await import('../commands/replay.js')).runReplay,
  },

  trigger: {
    ...SEND,
    summary: 'send a made-up delivery of an event',
    description: `Sends a signed delivery as the code host would, to the running relay serve or to any URL. The payload is made up, with
every field of a real one. With --source, as another sender would. With --body, that of a file, byte for byte but for a new id and, where
the body has it, the signed time; --keep-id leaves the id.`,
    examples: `relay trigger --list
relay trigger push
relay trigger issue_comment.created --set comment.body=/merge
relay trigger pull_request.opened --to http://localhost:3000/hook
relay trigger issues.opened --provider gitea --print > opened.json
relay trigger --list --source stripe
relay trigger --source stripe --event invoice.paid --body invoice.json`,
    args: [['[event]', 'event, event.action or source/event']],
    options: [
      ['--list', 'list the events'],
      ['--source <name>', 'source that it is of', { defaultText: 'the code host' }],
      ['--event <event>', 'the same as the argument; without it, the one that the body names'],
      ['--body <file|->', 'send this body'],
      ['--print', 'print the fixture instead of sending it'],
      ...SEND.options,
    ],
    settings: ['provider'],
    load: async () => (await import('../commands/trigger.js')).runTrigger,
  },

  verify: {
    summary: 'explain why a signature does not match',
    description: `Checks the signatures of fixtures or of deliveries in the journal against the webhook secret, or that of their source. For one that does not match,
names the cause: another secret, or white space at its end; a body that was changed after signing, and how; a form read as
JSON; a signature in another header or format. Never prints a secret or a correct signature.`,
    examples: `relay verify opened.json
relay verify last
relay verify refused:3
relay verify test/fixtures --secret-env GITHUB_WEBHOOK_SECRET
relay verify - --json < opened.json | jq -r .reason`,
    args: [['<file...>', 'fixtures, folders, -, entry numbers, last, or refused:<number>']],
    options: [SECRET_ENV],
    env: ['home', 'store', 'webhookSecret', 'webhookSecretPrevious'],
    exits: [[0, 'all signatures match'], 5, 6, 130],
    load: async () => (await import('../commands/verify.js')).runVerify,
  },

  routes: {
    ...STORED,
    summary: 'show where deliveries are forwarded to',
    description: `Lists the routes of the running relay serve: where deliveries go, whether each target answers, and how many deliveries of
the journal were forwarded to it, failed there, or wait. Without a running relay serve, lists those of the settings.`,
    examples: 'relay routes\nrelay routes test last',
    load: async () => (await import('../commands/routes.js')).runRoutes,
    subcommands: {
      test: {
        ...STORED,
        summary: 'show which routes match a delivery, and why',
        description: `Shows for every route of the running relay serve whether a delivery of the journal matches it, and why. Routes given here
replace those, so that you can try a change before you make it.`,
        examples: `relay routes test last
relay routes test 7 --forward 'pull_request.*=http://localhost:3000/pr'`,
        args: [ENTRY],
        settings: ['forward', 'exec', 'ignore'],
        load: async () => (await import('../commands/routes.js')).runRoutesTest,
      },
    },
  },

  'catch-up': {
    ...USER_COMMAND,
    summary: 'get what was sent while relay was away',
    description: `Compares the journal with the code host's log of a repository's hook. Has the code host send again what is missing, oldest
first, one after the other; the running relay serve receives it. Leaves out what retention has removed. Without a
repository, catches up through the webhook of the profile's App (relay setup --app-hook) and all hooks that this profile
created. GitHub's log covers 3 days; Gitea has none.`,
    examples: 'relay catch-up octo/demo\nrelay catch-up --since 2h --dry-run',
    args: [OPTIONAL_REPOSITORY],
    options: [
      ['--since <time>', 'sent since then: a duration ago (2h), or a time', { defaultText: '3 days ago' }],
      ['--dry-run', 'list what is missing, and ask for nothing'],
    ],
    exits: [4, 6, 8, 130],
    load: async () => (await import('../commands/catch-up.js')).runCatchUp,
  },
}
