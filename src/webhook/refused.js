/** 100 are more than a person looks through; 256 KiB hold nearly every delivery whole. */
export const REFUSED_LIMITS = { entries: 100, body: 262144, total: 8388608 }
/** An hour, and the minute that is under way. */
const MINUTES = 61
/**
 * The last refused requests, over HTTP and through the tunnel, in memory only. Where there are too many, the oldest of the most
 * frequent kind makes room, so that a flood of one kind does not push out the others.
 */
export class RefusedList {
  #limits
  #kept = new Map()
  #counts = {}
  #minutes = new Map()
  #total = 0
  #last = 0
  constructor(limits = REFUSED_LIMITS) {
    this.#limits = limits
  }
  add(given) {
    // A copy, so that the rest of a long body, or the buffer around a short one, is not held.
    const body = new Uint8Array(given.body.subarray(0, this.#limits.body))
    const refused = { ...given, body, id: ++this.#last }
    const { id, kind, at } = refused
    this.#kept.set(id, refused)
    this.#total += sizeOf(refused)
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1
    const minute = Math.floor(at / 60000)
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1)
    const [oldest = minute] = this.#minutes.keys()
    if (this.#minutes.size > MINUTES) this.#minutes.delete(oldest)
    while (this.#kept.size > this.#limits.entries || this.#total > this.#limits.total) this.#makeRoom()
    return refused
  }
  /** The newest last. */
  list() {
    return [...this.#kept.values()]
  }
  get(id) {
    return this.#kept.get(id)
  }
  counts() {
    return { ...this.#counts }
  }
  /** How many were refused in each of the last 61 minutes in which any was, by the minute's number since 1970. */
  minutes() {
    return this.#minutes
  }
  #makeRoom() {
    const counts = new Map()
    for (const { kind } of this.#kept.values()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    const most = Math.max(...counts.values())
    for (const refused of this.#kept.values()) {
      if (counts.get(refused.kind) !== most) continue
      this.#kept.delete(refused.id)
      this.#total -= sizeOf(refused)
      return
    }
  }
}
function sizeOf({ body, headers }) {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length)
}
