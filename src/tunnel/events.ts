const NEWLINE = 0x0a
const RETURN = 0x0d

/**
 * Passes an event stream on, event by event, without those larger than `limit` bytes: what reads the stream would keep
 * all of one until its end, which may never come.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export async function* wholeEvents(
  stream: AsyncIterable<Uint8Array>,
  limit: number,
  onTooLarge: () => void,
): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let size = 0
  const end = { lineIsEmpty: true }
  for await (const chunk of stream) {
    let from = 0
    while (from < chunk.length) {
      const past = endOfEvent(chunk, from, end)
      const piece = chunk.subarray(from, past ?? chunk.length)
      from += piece.length
      size += piece.length
      if (size <= limit) held.push(piece)
      else held = []
      if (past === undefined) continue
      if (size > limit) onTooLarge()
      else yield* held
      held = []
      size = 0
    }
  }
}

/** Past the empty line that ends an event; `end` goes from chunk to chunk. */
function endOfEvent(chunk: Uint8Array, from: number, end: { lineIsEmpty: boolean }): number | undefined {
  for (let at = from; ; at++) {
    const newline = chunk.indexOf(NEWLINE, at)
    const stop = newline === -1 ? chunk.length : newline
    if (stop > at && !(stop === at + 1 && chunk[at] === RETURN)) end.lineIsEmpty = false
    if (newline === -1) return undefined
    if (end.lineIsEmpty) return newline + 1
    end.lineIsEmpty = true
    at = newline
  }
}
