/** What must be done before the process ends at once: each returns within about a second and does not throw. Called by `bin`. */
export const atExit = new Set<() => void>()
