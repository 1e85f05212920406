import type { ServerResponse } from 'node:http'
import { RelayError } from '../base/errors.js'
import { type ChangeLine, HEARTBEAT_MS, type Topic } from '../instance/protocol.js'

/** Maximum of open streams, far above the number of commands that one person runs. Each is a connection. */
const MAX_STREAMS = 100
/**
 * Pause after a line. Changes during it are sent in one line, so that a burst costs a reader at most twenty reads of
 * the journal a second. Milliseconds.
 */
const PAUSE_MS = 50
/**
 * Time for the last bytes of a stream when relay stops. Without a limit, a command that does not read would keep relay
 * running. Milliseconds.
 */
const CLOSE_LIMIT_MS = 500

const HEADERS = { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' }

/** The stream of one command. */
interface Stream {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** Topics that are not sent yet: at most one of each, however long the command does not read. */
  readonly due: Set<Topic>
  /** The HTTP response; undefined for a request made in-process. */
  readonly outgoing: ServerResponse | undefined
}

/**
 * Streams that announce changes to the commands that follow this instance. The first change is sent at once, and those
 * within {@link PAUSE_MS} after it together. A line only names what to read again, so nothing is lost when an unread
 * line is joined by the next.
 */
export class ChangeStreams {
  readonly #streams = new Set<Stream>()
  readonly #stopped: AbortSignal
  #pause: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined

  /** @param stopped aborts when the instance stops, which ends every stream */
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

  /** Announces a change. Must be cheap and does not throw, since every change of the instance passes here. */
  changed(topic: Topic): void {
    if (this.#streams.size === 0) return
    for (const { due } of this.#streams) due.add(topic)
    if (!this.#pause) this.#flush()
  }

  /**
   * Opens a stream of lines and sends the first at once. It ends when the instance stops.
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
    // A stream buffers one unread line by default. Further topics wait in `due`.
    const pull = (): void => {
      if (stream) send(stream)
    }
    const body = new ReadableStream<Uint8Array>({ start, pull, cancel: gone })
    outgoing?.once('close', gone)
    // Node keeps a connection that the client has half closed, and that is how a command that ends closes it.
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

/** True if the command has read everything that was sent. */
function isRead({ controller }: Stream): boolean {
  return (controller.desiredSize ?? 0) > 0
}

/** Sends the topics that are due, unless an earlier line is still unread. */
function send(stream: Stream): void {
  const { controller, due } = stream
  if (due.size === 0 || !isRead(stream)) return
  const line = lineOf([...due])
  // Cleared first, since `enqueue` can call `pull` at once.
  due.clear()
  controller.enqueue(line)
}

function lineOf(changed: ChangeLine['changed']): Uint8Array {
  return Buffer.from(`${JSON.stringify({ changed } satisfies ChangeLine)}\n`)
}
