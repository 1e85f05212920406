import { REACTIONS } from '../../providers/provider.js'
import type { Reaction, Subject } from '../model.js'
import { userResource } from './user.js'
import { nodeId, type View } from './view.js'

/** A reaction (https://docs.github.com/rest/reactions/reactions). */
export function reactionResource(view: View, { id, user, content, createdAt }: Reaction) {
  return {
    id,
    node_id: nodeId('Reaction', id),
    user: userResource(view, user),
    content,
    created_at: createdAt,
  }
}

/** The count of each reaction, as issues and comments carry it. `url` is the subject's own. */
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
