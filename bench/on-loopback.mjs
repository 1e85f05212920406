// Has the servers of a program listen on 127.0.0.1 alone: node --import ./bench/on-loopback.mjs …
import { Server } from 'node:net'

const listen = Reflect.get(Server.prototype, 'listen')
Server.prototype.listen = function (options, ...rest) {
  return listen.call(this, typeof options === 'object' ? { ...options, host: '127.0.0.1' } : options, ...rest)
}
