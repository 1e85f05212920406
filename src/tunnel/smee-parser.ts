// smee-client, as a parser of Server-Sent Events: relay's specification names this package for the channel, and parsing is all of it that relay
// can use. Its own connection ends for good after one 502, reconnects by itself after other ends, and reads ahead without a limit. So it gets a
// `fetch` that answers with a stream of relay's, and is stopped when that ends.

interface Listeners {
  /** Called with each message's text and id, which is empty if it has none. Must not throw. */
  readonly onMessage: (text: string, id: string) => void
  /** Called for each event of the type `gap.type`. */
  readonly gap: { readonly type: string; readonly on: () => void }
}

/** Parses the events of a stream. Nothing is read from `chunks` until all listen, and nothing ahead. `url` is only a name here. */
export async function parseEvents(
  url: string,
  chunks: AsyncIterable<Uint8Array>,
  { onMessage, gap }: Listeners,
): Promise<void> {
  const { SmeeClient } = await import('smee-client')
  async function* read(): AsyncGenerator<Uint8Array> {
    await subscribed
    yield* chunks
    // Before the stream ends, which the client would take for a reason to reconnect.
    await client.stop()
  }
  const headers = new Headers({ 'content-type': 'text/event-stream' })
  const client = new SmeeClient({
    source: url,
    target: url,
    fetch: () => Promise.resolve({ status: 200, headers, body: ReadableStream.from(read()) }),
    forward: false,
    logger: { info: () => {}, error: () => {} },
  })
  const listen = async (): Promise<void> => {
    const events = await client.start()
    events.addEventListener('message', ({ data, lastEventId }) => onMessage(String(data), lastEventId))
    events.addEventListener(gap.type, gap.on)
  }
  const subscribed = listen()
}
