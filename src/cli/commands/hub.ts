import { define, type Flags, type Shell } from '../command.js'
import { marked, own, timeField } from '../output/outside.js'
import { spokenTime } from '../output/time.js'
import { describeSize } from '../profile-size.js'
import type { ChannelState, InviteFlags, RevokeFlags } from './hub/operate.js'
import type { HubFlags, HubItem } from './hub/serve.js'

const HUB_ENV = ['home', 'storePassword', 'tokenKey', 'tokenKeyPrevious'] as const
const CHANNEL = {
  args: [['<channel>', 'its name, or the first characters of its address, as relay hub list shows them']],
} as const

const inviteCommand = define({
  description: `Makes an invitation, which lets a relay serve make a channel at this hub. It is shown once, and stored as a digest.`,
  examples: `relay hub invite
relay hub invite --name ada --uses 2 --expires 7d`,
  options: [
    ['--name <name>', 'name of its channels in relay hub list'],
    ['--uses <n>', 'channels that it makes', { default: '1' }],
    ['--expires <duration>', 'how long it is valid', { default: '1d' }],
    ['--channel-max <size>', 'most that may wait in a channel', { defaultText: '256MiB' }],
    ['--channel-rate <n>', 'most requests to a channel in a minute', { defaultText: '12000' }],
  ],
  settings: ['store'],
  env: HUB_ENV,
  async run(shell: Shell, flags: InviteFlags) {
    const { invite } = await import('./hub/operate.js')
    return invite(shell, flags)
  },
  print: ({ token, tunnel, isNear }, out) => {
    out.say(`Set RELAY_HUB_TOKEN to this at the workstation, and start relay serve --tunnel ${tunnel} there:`)
    out.result(token)
    if (isNear)
      out.log.warn('only this machine reaches that address. For others, the hub needs --public-url https://…')
  },
  json: ({ token, tunnel, expiresAt }) =>
    marked({ token: own(token), tunnel: own(tunnel), expiresAt: timeField(expiresAt) }),
})

const listCommand = define({
  description: `Lists the channels, with the requests that wait for each and whether its workstation is connected. Also lists the invitations
that can still be used. It shows no request.`,
  examples: `relay hub list
relay hub list --json | jq -r 'select(.waiting > 0) | .name'`,
  settings: ['store'],
  env: HUB_ENV,
  async run(shell: Shell, flags: Flags) {
    const { listChannels } = await import('./hub/operate.js')
    return listChannels(shell, flags)
  },
  print: ({ channels, invitations, invite }, out) => {
    if (channels.length === 0) out.say(`There are no channels. ${invite} makes an invitation for one`)
    const rows = channels.map(({ channel, waiting, bytes, machine, isWithdrawn, createdAt, name }) => [
      name === '' ? '-' : name,
      `${channel.slice(0, 8)}…`,
      String(waiting),
      describeSize(bytes),
      stateOf({ machine, isWithdrawn }),
      spokenTime(createdAt, Date.now()),
    ])
    if (rows.length > 0) out.table([['name', 'channel', 'waiting', 'size', 'workstation', 'made'], ...rows])
    const open = invitations.map(({ id, name, renews, uses, expiresAt }) => [
      name === '' ? '-' : name,
      `${id.slice(0, 8)}…`,
      renews === null ? `${uses} new` : `renews ${renews.slice(0, 8)}…`,
      spokenTime(expiresAt, Date.now()),
    ])
    if (open.length > 0) out.table([['name', 'invitation', 'channels', 'expires'], ...open])
  },
  json: ({ channels, invitations }) => [
    ...channels.map(({ channel, name, waiting, bytes, machine, createdAt, isWithdrawn }) =>
      marked({
        type: 'channel',
        channel: own(channel),
        name: own(name),
        waiting,
        bytes,
        connected: typeof machine === 'string',
        withdrawn: isWithdrawn,
        createdAt: timeField(createdAt),
      }),
    ),
    ...invitations.map(({ id, name, renews, uses, expiresAt }) =>
      marked({
        type: 'invitation',
        invitation: own(id),
        name: own(name),
        renews: renews === null ? null : own(renews),
        uses,
        expiresAt: timeField(expiresAt),
      }),
    ),
  ],
})

const revokeCommand = define({
  description: `Withdraws the key of a channel, and closes its address. Its workstation reports that, and gets nothing more. Waiting requests
stay until relay hub renew gives the channel another key. An invitation that would have renewed the channel is no longer valid. An
unused invitation is cancelled in the same way. --purge removes the channel with all of its requests, after a question.`,
  examples: 'relay hub revoke ada\nrelay hub revoke Kf3vWq0p --purge',
  options: [
    ['--purge', 'remove the channel and its requests, too'],
    ['--yes', 'do not ask for confirmation'],
  ],
  args: [
    ['<channel>', 'name of a channel or an invitation, or the first characters that relay hub list shows'],
  ],
  settings: ['store'],
  env: HUB_ENV,
  exits: [6, 130],
  async run(shell: Shell, flags: RevokeFlags) {
    const { revoke } = await import('./hub/operate.js')
    return revoke(shell, flags)
  },
  print: (revoked, out) =>
    out.say(
      'invitation' in revoked
        ? `The invitation ${revoked.invitation.slice(0, 8)}… is cancelled`
        : revoked.purged
          ? `Channel ${revoked.channel.slice(0, 8)}… is removed, with its requests`
          : `The key of ${revoked.channel.slice(0, 8)}… is withdrawn, and its address is closed`,
    ),
  json: (revoked) =>
    'invitation' in revoked
      ? marked({ invitation: own(revoked.invitation), cancelled: true })
      : marked({ channel: own(revoked.channel), withdrawn: true, purged: revoked.purged }),
})

const renewCommand = define({
  description: `Withdraws the key of a channel, and makes an invitation that gives it another one, once. The address stays the
same, so nothing changes at the senders.`,
  examples: 'relay hub renew ada',
  ...CHANNEL,
  options: [['--expires <duration>', 'how long the invitation is valid', { default: '1d' }]],
  settings: ['store'],
  env: HUB_ENV,
  exits: [6],
  async run(shell: Shell, flags: Flags & { readonly channel: string; readonly expires?: string }) {
    const { renew } = await import('./hub/operate.js')
    return renew(shell, flags)
  },
  print: ({ token, channel, tunnel }, out) => {
    out.say(
      `The old key of ${channel.slice(0, 8)}… is withdrawn. For another, set RELAY_HUB_TOKEN to this at its workstation, and`,
    )
    out.say(`start relay serve --tunnel ${tunnel} there again. Until then, its address is closed:`)
    out.result(token)
  },
  json: ({ token, channel, tunnel }) =>
    marked({ channel: own(channel), token: own(token), tunnel: own(tunnel) }),
})

export const hubCommand = define({
  description: `Runs a hub: the public end of a tunnel of your own. It stores each request to a channel before it answers, and passes it
to that channel's relay serve --tunnel, which verifies and forwards it. It knows no secret of a sender.
Its data is the profile hub, unless --profile or RELAY_PROFILE names another. The same holds for its operator's commands.`,
  examples: `relay hub --host 0.0.0.0 --public-url https://hub.example.com  behind a proxy with TLS
relay hub --host 0.0.0.0 --port 443 --tls-cert chain.pem --tls-key key.pem
relay hub invite`,
  options: [
    ['--tls-cert <file>', 'certificate with its chain, in PEM: serve HTTPS'],
    ['--tls-key <file>', 'its key, in PEM'],
    ['--keep <duration>', 'how long fetched requests are kept', { defaultText: '1h' }],
  ],
  settings: [
    'port',
    'host',
    'allowHost',
    'publicUrl',
    'store',
    'keepMax',
    'metrics',
    'inspectHost',
    'logFormat',
  ],
  env: HUB_ENV,
  exits: [[0, 'success, also after Ctrl-C']],
  isService: true,
  subcommands: {
    invite: { summary: 'make an invitation for a workstation', ...inviteCommand },
    list: { summary: 'list the channels', ...listCommand },
    revoke: { summary: "withdraw a channel's key", ...revokeCommand },
    renew: { summary: 'give a channel another key', ...renewCommand },
  },
  async *run(shell: Shell, flags: HubFlags) {
    const { runHub } = await import('./hub/serve.js')
    yield* runHub(shell, flags)
  },
  async print(items, given) {
    let out = given
    for await (const item of items) {
      if (item.type === 'starting') out = out.withLogFormat(item.logFormat)
      else if (item.type === 'message') out.timedLog[item.level](item.text, item.cause)
      else if (out.jsonLog)
        out.event('info', 'the hub is running', () => ({ type: 'started', ...listeningObject(item) }))
      else for (const line of item.lines) out.say(line)
    }
  },
  json: (item) => (item.type === 'listening' ? marked({ type: 'listening', ...listeningObject(item) }) : []),
})

function listeningObject({ url, publicUrl, profile }: Extract<HubItem, { readonly type: 'listening' }>) {
  return { url: own(url), publicUrl: own(publicUrl), profile: own(profile) }
}

function stateOf({ machine, isWithdrawn }: Pick<ChannelState, 'machine' | 'isWithdrawn'>): string {
  if (isWithdrawn) return 'key withdrawn'
  return machine === undefined ? 'not connected' : `connected: ${machine}`
}
