import type { Route } from '../dispatch/route.js'
import { shortNames } from '../dispatch/short-names.js'

/** Gives each target its label. The same id always gets the same one. */
export type TargetLabels = (id: string) => string

/** A user has a handful of targets; reloaded settings can name others again and again. */
const MAX_LABELS = 100
/** The label of all targets beyond {@link MAX_LABELS}. */
const OTHERS = 'others'
/** A name, a host and port, or the name of a program. A command that begins with anything else could show what is secret in it. */
const SHORT = /^[\w.:[\]-]{1,64}$/
const UNNAMED = 'command'

/**
 * Labels of targets: the name that the route gives, else host and port, else the name of the command's program; never a path, a
 * query, a password or arguments. Where several targets would share a label, the later ones get a number.
 */
export function createTargetLabels(routes: () => readonly Route[]): TargetLabels {
  const labels = new Map<string, string>()
  const used = new Set<string>()
  const create = (id: string): string => {
    if (labels.size >= MAX_LABELS) return OTHERS
    const name = routes().find((route) => route.id === id)?.name
    // Named alone, a target has its shortest name.
    const short = shortNames([{ id, ...(name !== undefined && { name }) }]).get(id) ?? ''
    const base = SHORT.test(short) ? short : UNNAMED
    let label = base
    for (let count = 2; used.has(label); count++) label = `${base}-${count}`
    used.add(label)
    labels.set(id, label)
    return label
  }
  const labelOf: TargetLabels = (id) => labels.get(id) ?? create(id)
  // In the order of the routes, so that they have the same after a restart.
  for (const { id } of routes()) labelOf(id)
  return labelOf
}
