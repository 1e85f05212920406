import type { InstanceState, TargetState } from '../api.js'
import { Empty } from './empty.js'
import { counted, exactTime, formatCount, formatMs, saidTime } from './format.js'
import { Icon, type IconName } from './icon.js'
import { Visible } from './visible.js'

/** The running instance: its targets and their queues, its tunnel and hooks, who is signed in. */
export function State({ state, now }: { readonly state: InstanceState; readonly now: number }) {
  const { profile, provider, url, startedAt, deliveries, targets, ignored, tunnel, hooks, users } = state
  return (
    <div class="state">
      <h1 tabindex={-1}>State</h1>
      <dl class="facts facts-wide">
        <Fact name="Profile">{profile}</Fact>
        <Fact name="Code host">{provider}</Fact>
        <Fact name="Address">
          <code>{url}</code>
        </Fact>
        <Fact name="Running for">
          <time datetime={new Date(startedAt).toISOString()} title={`since ${exactTime(startedAt)}`}>
            {formatMs(Math.max(0, now - startedAt))}
          </time>
        </Fact>
        <Fact name="In the journal">{counted(deliveries, 'delivery', 'deliveries')}</Fact>
      </dl>
      <section class="section" aria-labelledby="targets-title">
        <h2 id="targets-title">Targets</h2>
        <Targets targets={targets} now={now} />
        {ignored.length === 0 ? null : (
          <p class="quiet">
            Not forwarded: <Visible text={ignored.join(', ')} />
          </p>
        )}
      </section>
      <section class="section" aria-labelledby="tunnel-title">
        <h2 id="tunnel-title">Tunnel</h2>
        <Tunnel tunnel={tunnel} />
      </section>
      <section class="section" aria-labelledby="hooks-title">
        <h2 id="hooks-title">Hooks</h2>
        <Hooks hooks={hooks} />
      </section>
      <section class="section" aria-labelledby="users-title">
        <h2 id="users-title">Signed in</h2>
        <Users users={users} now={now} />
      </section>
    </div>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: unknown }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A target's state as a sign and a word; one that the page does not know is shown as it is. */
const STATES: Readonly<Record<string, { icon: IconName; mark: string; word: string }>> = {
  up: { icon: 'check', mark: 'succeeded', word: 'up' },
  down: { icon: 'down', mark: 'down', word: 'down' },
  elsewhere: { icon: 'ring', mark: 'waiting', word: 'forwarded by another relay' },
  gone: { icon: 'cross', mark: 'waiting', word: 'no longer configured' },
}

function Targets({ targets, now }: { readonly targets: readonly TargetState[]; readonly now: number }) {
  if (targets.length === 0)
    return (
      <Empty title="No targets">
        <p>Deliveries are kept in the journal only. Forward them to a local program:</p>
        <pre class="command">{`relay serve --forward '*=http://localhost:3000/webhook'`}</pre>
      </Empty>
    )
  return (
    <ul class="cards">
      {targets.map((target) => (
        <li class="card" key={target.id}>
          <TargetCard target={target} now={now} />
        </li>
      ))}
    </ul>
  )
}

function TargetCard({ target, now }: { readonly target: TargetState; readonly now: number }) {
  const { name, label, match, waiting, succeeded, failed, since, nextProbeAt } = target
  const { icon, mark, word } = STATES[target.state] ?? { icon: 'ring', mark: 'waiting', word: target.state }
  return (
    <>
      <p class="card-title">
        <Visible text={name} />
        <span class={`mark mark-${mark}`}>
          <Icon name={icon} />
          <span>{word}</span>
        </span>
      </p>
      <p class="card-label">
        <code>
          <Visible text={`${match} → ${label}`} />
        </code>
      </p>
      <dl class="numbers">
        <Figure name="waiting" value={waiting} />
        <Figure name="succeeded" value={succeeded} />
        <Figure name="failed" value={failed} />
      </dl>
      {since === undefined ? null : (
        <p class="quiet">
          {word} since {saidTime(since, now)}
          {nextProbeAt === undefined ? '' : `, next attempt at ${saidTime(nextProbeAt, now)}`}
        </p>
      )}
    </>
  )
}

function Figure({ name, value }: { readonly name: string; readonly value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{formatCount(value)}</dd>
    </div>
  )
}

function Tunnel({ tunnel }: { readonly tunnel: InstanceState['tunnel'] }) {
  if (tunnel === null)
    return (
      <Empty title="No tunnel">
        <p>A tunnel lets a code host on the internet reach this machine:</p>
        <pre class="command">relay serve --tunnel</pre>
      </Empty>
    )
  const { state, payloadUrl, detail } = tunnel
  return (
    <dl class="facts facts-wide">
      <Fact name="Connection">
        <Visible text={state} />
      </Fact>
      {payloadUrl === null ? null : (
        <Fact name="Payload address">
          <code>
            <Visible text={payloadUrl} />
          </code>
        </Fact>
      )}
      {detail === null ? null : (
        <Fact name="Detail">
          <Visible text={detail} />
        </Fact>
      )}
    </dl>
  )
}

function Hooks({ hooks }: { readonly hooks: InstanceState['hooks'] }) {
  if (hooks.length === 0)
    return (
      <Empty title="No hooks">
        <p>A hook makes the code host send a repository's deliveries here:</p>
        <pre class="command">relay hook add octo/demo</pre>
      </Empty>
    )
  return (
    <ul class="cards">
      {hooks.map(({ repo, url, permanent, problem }) => (
        <li class="card">
          <p class="card-title">
            <Visible text={repo} />
            <span class={`mark mark-${problem === null ? 'succeeded' : 'failed'}`}>
              <Icon name={problem === null ? 'check' : 'cross'} />
              <span>{problem === null ? 'registered' : 'failed'}</span>
            </span>
          </p>
          {url === null ? null : (
            <p class="card-label">
              <code>
                <Visible text={url} />
              </code>
            </p>
          )}
          <p class="quiet">
            {problem === null ? (
              permanent ? (
                'stays when relay stops'
              ) : (
                'removed when relay stops'
              )
            ) : (
              <Visible text={problem} />
            )}
          </p>
        </li>
      ))}
    </ul>
  )
}

function Users({ users, now }: { readonly users: InstanceState['users']; readonly now: number }) {
  if (users.length === 0)
    return (
      <Empty title="No user is signed in">
        <p>Sign in to comment, merge and react from the shell:</p>
        <pre class="command">relay login</pre>
      </Empty>
    )
  return (
    <ul class="cards">
      {users.map(({ userId, expiresAt, origin }) => (
        <li class="card">
          <p class="card-title">
            <Visible text={userId} />
          </p>
          <p class="quiet">
            <Visible text={origin} />, {expiresAt > now ? 'until' : 'expired'}{' '}
            <time datetime={new Date(expiresAt).toISOString()} title={exactTime(expiresAt)}>
              {saidTime(expiresAt, now)}
            </time>
          </p>
        </li>
      ))}
    </ul>
  )
}
