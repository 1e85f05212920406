// Actions at a code host, by the names that commands and requests have.

export const MERGE_METHODS = ['merge', 'squash', 'rebase'] as const
export type MergeMethod = (typeof MERGE_METHODS)[number]

export const REACTIONS = ['+1', '-1', 'laugh', 'confused', 'heart', 'hooray', 'rocket', 'eyes'] as const
export type Reaction = (typeof REACTIONS)[number]
