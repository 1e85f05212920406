import { nodeId } from './node-id.js'
import { REACTIONS } from '../../codehost/host.js'
import type { Reaction, Subject } from '../model.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** Reaction (https://docs.github.com/rest/reactions/reactions). */
export function reactionResource(view: View, { id, user, content, createdAt }: Reaction) {
  return {
    id,
    node_id: nodeId('Reaction', id),
    user: userResource(view, user),
    content,
    created_at: createdAt,
  }
}

/** Counts per reaction, part of issues and comments. `url` is that of the issue or comment. */
export function reactionRollup(view: View, subject: Subject, url: string) {
  const reactions = view.state.reactionsTo(subject)
  const counts = REACTIONS.map((content): [string, number] => [
    content,
    reactions.filter((reaction) => reaction.content === content).length,
  ])
  return {
    url: `${url}/reactions`,
    total_count: reactions.length,
    ...Object.fromEntries(counts),
  }
}
