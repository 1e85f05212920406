// For `--require`: the host app.localhost has the addresses of FAR_ADDRESSES, and every connection takes FAR_MS, as to the other side of the world.
const dns = require('node:dns')
const net = require('node:net')

const addresses = (process.env.FAR_ADDRESSES || '127.0.0.1').split(',')
const delay = Number(process.env.FAR_MS)
const lookup = dns.lookup
const answer = (options, callback) => {
  const all = addresses.map((address) => ({ address, family: net.isIP(address) }))
  if (options?.all) callback(null, all)
  else callback(null, addresses[0], net.isIP(addresses[0]))
}
dns.lookup = (host, options, callback) => {
  if (host === 'app.localhost') process.nextTick(answer, options, callback)
  else lookup(host, options, callback)
}

// The handle of a socket is the only place where a connection can be delayed as a network does it. Reading it warns.
process.removeAllListeners('warning')
process.noDeprecation = true
const { TCP } = process.binding('tcp_wrap')
const { close, connect } = TCP.prototype
const closed = new WeakSet()
TCP.prototype.close = function (...args) {
  closed.add(this)
  return close.apply(this, args)
}
TCP.prototype.connect = function (...args) {
  setTimeout(() => void (closed.has(this) || connect.apply(this, args)), delay)
  return 0
}
