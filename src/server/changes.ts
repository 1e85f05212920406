import type { ServerResponse } from 'node:http'
import { RelayError } from '../base/errors.js'
import { type ChangeLine, HEARTBEAT_MS, type Topic } from '../instance/protocol.js'

/** Open streams at once: far more commands than a person has following. Each is a connection. */
const MAX_STREAMS = 100
/** After a line, until the next one: what changes meanwhile is one line, so that a burst costs its readers twenty looks a second. Milliseconds. */
const PAUSE_MS = 50
/** For the last bytes of a stream at the end of relay: a command that does not read would keep relay from ending. Milliseconds. */
const CLOSE_LIMIT_MS = 500

const HEADERS = { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' }

/** A command that follows. */
interface Stream {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** Topics that it has not been sent: at most one of each, however long it does not read. */
  readonly due: Set<Topic>
  /** Its answer; undefined for a request made in-process. */
  readonly outgoing: ServerResponse | undefined
}

/**
 * Sends the commands that follow what has changed: the first change at once, those that come within {@link PAUSE_MS} of it together. A line
 * says what to read again, so that one that was not read yet loses nothing when the next joins it.
 */
export class ChangeStreams {
  readonly #streams = new Set<Stream>()
  readonly #stopped: AbortSignal
  #pause: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined

  /** @param stopped aborts when the instance stops, which ends every stream at once */
  constructor(stopped: AbortSignal) {
    this.#stopped = stopped
    stopped.addEventListener('abort', () => {
      clearTimeout(this.#pause)
      for (const stream of this.#streams) {
        this.#remove(stream)
        stream.controller.close()
        setTimeout(() => stream.outgoing?.destroy(), CLOSE_LIMIT_MS).unref()
      }
    })
  }

  /** Must be cheap, and does not throw: every change of the instance passes here. */
  changed(topic: Topic): void {
    if (this.#streams.size === 0) return
    for (const { due } of this.#streams) due.add(topic)
    if (!this.#pause) this.#flush()
  }

  /**
   * A stream of lines, the first at once. It ends when the instance stops.
   * @throws RelayError `unavailable` while {@link MAX_STREAMS} are open
   */
  open(headers: Readonly<Record<string, string>>, outgoing: ServerResponse | undefined): Response {
    if (this.#stopped.aborted) throw new RelayError('unavailable', 'relay is stopping')
    if (this.#streams.size >= MAX_STREAMS)
      throw new RelayError('unavailable', `${MAX_STREAMS} commands follow this relay already`)
    let stream: Stream | undefined
    const start = (controller: Stream['controller']): void => {
      stream = { controller, due: new Set(), outgoing }
      this.#streams.add(stream)
      this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_MS).unref()
      controller.enqueue(lineOf([]))
    }
    const gone = (): void => {
      if (stream) this.#remove(stream)
    }
    // The default is one line that is not read yet: the topics of the others wait in `due`.
    const pull = (): void => {
      if (stream) send(stream)
    }
    const body = new ReadableStream<Uint8Array>({ start, pull, cancel: gone })
    outgoing?.once('close', gone)
    // The service leaves a connection open that a client has half closed; a command that is gone closes it so.
    outgoing?.socket?.once('end', () => outgoing.destroy())
    return new Response(body, { headers: { ...HEADERS, ...headers } })
  }

  #flush(): void {
    for (const stream of this.#streams) send(stream)
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      if ([...this.#streams].some((stream) => stream.due.size > 0 && isRead(stream))) this.#flush()
    }, PAUSE_MS).unref()
  }

  #beat(): void {
    for (const stream of this.#streams) if (isRead(stream)) stream.controller.enqueue(lineOf([]))
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }
}

/** Whether it has read all that it was sent. */
function isRead({ controller }: Stream): boolean {
  return (controller.desiredSize ?? 0) > 0
}

/** Sends what is due, once the stream has read what it was sent before. */
function send(stream: Stream): void {
  const { controller, due } = stream
  if (due.size === 0 || !isRead(stream)) return
  const line = lineOf([...due])
  // First, since this can ask for the next line at once.
  due.clear()
  controller.enqueue(line)
}

function lineOf(changed: ChangeLine['changed']): Uint8Array {
  return Buffer.from(`${JSON.stringify({ changed } satisfies ChangeLine)}\n`)
}
