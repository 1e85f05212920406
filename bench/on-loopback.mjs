// Has the servers of a program listen on 127.0.0.1 alone: node --import ./bench/on-loopback.mjs …
import { Server } from 'node:net'

const listen = Reflect.get(Server.prototype, 'listen')
Server.prototype.listen = function (...args) {
  const [first] = args
  const options = typeof first === 'object' ? first : { port: first }
  const callbacks = args.filter((arg) => typeof arg === 'function')
  return listen.call(this, { ...options, host: '127.0.0.1' }, ...callbacks)
}
