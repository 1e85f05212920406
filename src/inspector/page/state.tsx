import { useEffect } from 'preact/hooks'
import type { InstanceState, SourceState, TargetState, TunnelState } from '../api.js'
import { AddButton, RemoveRouteButton } from './add.js'
import { useApi } from './client.js'
import { command } from './command.js'
import { counted, exactTime, formatCount, formatMs } from './format.js'
import { now } from './model.js'
import { Card, Code, Empty, Facts, Section, type Status, Time, Visible } from './parts.js'

/** The running instance: its targets and their queues, its tunnel and hooks, and the users who are signed in. */
export function State() {
  // Read again after deliveries, which change the counts of the targets.
  const { value, problem } = useApi<InstanceState>(
    'state',
    ({ type }) => type === 'state' || type === 'lines',
  )
  useEffect(() => {
    document.title = 'State · relay'
  }, [])
  return (
    <div class="pane">
      {value ? <Instance state={value} /> : null}
      {problem && !value ? <Empty title={problem.message} /> : null}
    </div>
  )
}

function Instance({ state }: { readonly state: InstanceState }) {
  const { profile, provider, url, startedAt, deliveries, sources, hooks, users } = state
  return (
    <div class="detail">
      <header class="head">
        <h1 tabIndex={-1}>State</h1>
        <Facts
          facts={{
            Profile: profile,
            'Code host': provider,
            Address: <Code text={url} />,
            'Running for': (
              <span title={`since ${exactTime(startedAt)}`}>
                {formatMs(Math.max(0, Math.max(now.value, Date.now()) - startedAt))}
              </span>
            ),
            'In the journal': counted(deliveries, 'delivery', 'deliveries'),
          }}
        />
      </header>
      <Targets state={state} />
      <Section title="Sources" tools={<AddButton what="source" />}>
        {sources.length === 0 ? (
          <p class="quiet">Senders besides the code host, such as Stripe or Slack. There are none yet.</p>
        ) : (
          <ul class="cards">
            {sources.map((source) => (
              <Source
                key={source.name}
                source={source}
                tunnel={state.sourceTunnels?.find((each) => each.source === source.name)}
              />
            ))}
          </ul>
        )}
      </Section>
      <div class="columns">
        <Section title="Tunnel">
          {state.tunnel === null ? (
            <Hint title="No tunnel" command={command('serve --tunnel')}>
              A tunnel lets a code host on the internet reach this machine. Stop relay, and start it again
              with
            </Hint>
          ) : (
            <Tunnel tunnel={state.tunnel} />
          )}
        </Section>
        <Section title="Hooks" tools={<AddButton what="hook" />}>
          <Hooks hooks={hooks} command={command('hook add octo/demo')} />
        </Section>
        <Section title="Signed in">
          <Users users={users} command={command('login')} />
        </Section>
      </div>
    </div>
  )
}

function Targets({ state }: { readonly state: InstanceState }) {
  const { targets, ignored } = state
  return (
    <Section title="Targets" tools={<AddButton what="route" />}>
      {targets.length === 0 ? (
        <Hint title="No targets" command={command("serve --forward '*=http://localhost:3000/webhook'")}>
          Deliveries are only stored in the journal. To forward them to a local program, add a route here. Or
          stop relay, and start it again with
        </Hint>
      ) : (
        <ul class="cards">
          {targets.map((target) => (
            <Target key={target.id} target={target} />
          ))}
        </ul>
      )}
      {ignored.length === 0 ? null : (
        <p class="quiet">
          Not forwarded: <Visible text={ignored.join(', ')} />
        </p>
      )}
    </Section>
  )
}

interface HintProps {
  readonly title: string
  readonly children: string
  readonly command: string
}

/** Message about something missing, with the command that adds it. */
function Hint({ title, children, command }: HintProps) {
  return (
    <Empty title={title}>
      <p>{children}</p>
      <pre class="command">{command}</pre>
    </Empty>
  )
}

/** Sign and word for a target's state. An unknown state is shown unchanged. */
const STATES: Readonly<Record<string, { status: Status; word: string }>> = {
  up: { status: 'succeeded', word: 'up' },
  down: { status: 'down', word: 'down' },
  elsewhere: { status: 'waiting', word: 'forwarded by another relay' },
}

function Target({ target }: { readonly target: TargetState }) {
  const { name, label, match, waiting, failed, since, nextProbeAt } = target
  const { status, word } = STATES[target.state] ?? { status: 'waiting', word: target.state }
  return (
    <Card name={name} label={`${match} → ${label}`} status={status} word={word}>
      <p class="quiet">
        {formatCount(waiting)} waiting,{' '}
        <span class={failed > 0 ? 'error-text' : ''}>{formatCount(failed)} failed</span>
        {since === undefined ? null : [`, ${word} since `, <Time at={since} />]}
        {nextProbeAt === undefined ? null : [', next attempt at ', <Time at={nextProbeAt} />]}
        {target.ofProfile ? ', of the profile' : null}
      </p>
      {target.ofProfile ? (
        <p>
          <RemoveRouteButton target={target} />
        </p>
      ) : null}
    </Card>
  )
}

interface SourceProps {
  readonly source: SourceState
  readonly tunnel: TunnelState | undefined
}

/** A source of deliveries, with its scheme. */
function Source({ source: { name, scheme, url }, tunnel }: SourceProps) {
  return (
    <Card name={name} label={url}>
      <p class="quiet">
        {scheme === 'none'
          ? 'Proves nothing: anybody can send deliveries.'
          : ['Scheme: ', <Code text={scheme} />]}
      </p>
      {tunnel ? <Tunnel tunnel={tunnel} /> : null}
    </Card>
  )
}

function Tunnel({ tunnel: { state, payloadUrl, detail } }: { readonly tunnel: TunnelState }) {
  return (
    <Facts
      facts={{
        Connection: state,
        'Payload address': payloadUrl && <Code text={payloadUrl} />,
        Detail: detail,
      }}
    />
  )
}

interface HooksProps {
  readonly hooks: InstanceState['hooks']
  /** Command that makes a hook. */
  readonly command: string
}

function Hooks({ hooks, command }: HooksProps) {
  if (hooks.length === 0)
    return (
      <Hint title="No hooks" command={command}>
        A hook makes the code host send a repository's deliveries here. Add one here, or in a terminal with
      </Hint>
    )
  return (
    <ul class="cards">
      {hooks.map(({ repo, url, permanent, problem }) => (
        <Card
          name={repo}
          label={url}
          status={problem === null ? 'succeeded' : 'failed'}
          word={problem === null ? 'registered' : 'failed'}
        >
          <p class="quiet">
            <Visible text={problem ?? (permanent ? 'stays when relay stops' : 'removed when relay stops')} />
          </p>
        </Card>
      ))}
    </ul>
  )
}

interface UsersProps {
  readonly users: InstanceState['users']
  /** Command that signs in. */
  readonly command: string
}

function Users({ users, command }: UsersProps) {
  if (users === null)
    return <p class="quiet">The keychain did not answer, so it is not known who is signed in.</p>
  if (users.length === 0)
    return (
      <Hint title="No user is signed in" command={command}>
        Sign in to comment, merge and react from the shell:
      </Hint>
    )
  return (
    <ul class="cards">
      {users.map(({ userId, expiresAt, origin }) => (
        <Card name={userId}>
          <p class="quiet">
            <Visible text={origin} />, {expiresAt > now.value ? 'until' : 'expired'} <Time at={expiresAt} />
          </p>
        </Card>
      ))}
    </ul>
  )
}
