import { setImmediate } from 'node:timers'

/** Where messages to another thread go. */
interface Port<Message> {
  postMessage(messages: readonly Message[], buffers: ArrayBuffer[]): void
}

/** Posts all messages of one turn of the event loop together: a message by itself costs as much as what it asks for. */
export class Outbox<Message> {
  readonly #port: Port<Message>
  #messages: Message[] = []
  #buffers: ArrayBuffer[] = []

  constructor(port: Port<Message>) {
    this.#port = port
  }

  /** The memory of `buffers` is moved to the other thread. */
  post(message: Message, buffers: readonly ArrayBuffer[] = []): void {
    if (this.#messages.length === 0) setImmediate(() => this.#flush())
    this.#messages.push(message)
    this.#buffers.push(...buffers)
  }

  #flush(): void {
    const [messages, buffers] = [this.#messages, this.#buffers]
    this.#messages = []
    this.#buffers = []
    this.#port.postMessage(messages, buffers)
  }
}
