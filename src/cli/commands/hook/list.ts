import { explainHookError, isOurs, type SavedHook, SavedHooks } from '../../../codehost/hooks.js'
import type { RepoHook } from '../../../codehost/host.js'
import type { Context } from '../../context.js'
import { table } from '../../output/table.js'
import { formatRepo } from '../../session/repo.js'
import { openSession } from '../../session/session.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { openHookSession, payloadAddress } from './hook-session.js'
import { hookObject } from './object.js'

/** Runs `relay hook list`. */
export async function runList(context: Context, flags: CommonFlags, text?: string): Promise<void> {
  return text === undefined ? listOwn(context, flags) : listAll(context, flags, text)
}

/** The hooks that this profile made, without a request. */
async function listOwn(context: Context, flags: CommonFlags): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, store, host } = session
  const saved = await new SavedHooks(store, host).list()
  if (flags.json) {
    for (const { id, url, permanent, ...hook } of saved)
      output.object({ type: 'hook', repo: formatRepo(hook), id, url, permanent })
    return
  }
  if (saved.length === 0)
    return output.say(`This profile has created no hooks at ${host.url}. relay hook add creates one`)
  for (const line of table(saved.map((hook) => [formatRepo(hook), hook.url, describeState(hook)])))
    output.result(line)
}

/** A hook whose creation was interrupted may be at the code host or not. */
function describeState(hook: SavedHook): string {
  return hook.id === null ? `perhaps not there; finish with relay hook add ${formatRepo(hook)}` : ''
}

async function listAll(context: Context, flags: CommonFlags, text: string): Promise<void> {
  await using hooks = await openHookSession(context, flags, text)
  const { session, place, repo } = hooks
  const { output } = session
  const saved = await place.saved.get(repo)
  const url = await payloadAddress(session, {})
  const ours = (hook: RepoHook): boolean => isOurs(hook, saved, url)
  const all = await place.hooks.list(repo).catch((error: unknown) => {
    throw explainHookError(error, place)
  })
  if (flags.json) {
    for (const hook of all) output.object(hookObject(hook, ours(hook)))
    return
  }
  if (all.length === 0)
    return output.say(`${formatRepo(repo)} has no hooks. relay hook add ${formatRepo(repo)} creates one`)
  const rows = all.map((hook) => [
    ours(hook) ? 'here' : '',
    String(hook.id),
    describeAnswer(hook),
    describeSettings(hook),
    hook.url,
  ])
  for (const line of table([HEADINGS, ...rows])) output.result(line)
}

const HEADINGS = ['leads', 'id', 'last answer', 'settings', 'address']

function describeAnswer({ lastResponse }: RepoHook): string {
  if (!lastResponse) return 'unknown'
  const { code, message } = lastResponse
  return message === '' ? String(code) : `${code} ${message}`
}

function describeSettings({ active, contentType, events, hasSecret }: RepoHook): string {
  return [
    active ? undefined : 'inactive',
    contentType,
    hasSecret === false ? 'no secret' : undefined,
    events.includes('*') ? 'every event' : events.join(' '),
  ]
    .filter((each) => each !== undefined)
    .join(', ')
}
