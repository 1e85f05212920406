import {
  array,
  assert,
  constantFrom,
  integer,
  ipV4,
  ipV6,
  oneof,
  option,
  property,
  stringMatching,
  tuple,
} from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hostCheck } from '../../src/http/host.js'

const allowed = ['relay.example', 'Tunnel.Example.:443', '198.51.100.7']
const onLoopback = hostCheck({ host: '127.0.0.1', allowed })
const onAll = hostCheck({ host: '0.0.0.0', allowed })

const port = option(integer({ min: 0, max: 65_535 }), { nil: undefined }).map((n) =>
  n === undefined ? '' : `:${n}`,
)
const label = stringMatching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,10}[A-Za-z0-9])?$/)
const octet = integer({ min: 0, max: 255 })

describe('bound to a loopback address', () => {
  it.each([
    'localhost',
    'localhost:8787',
    'LOCALHOST:8787',
    'localhost.',
    'localhost.:8787',
    'app.localhost',
    'a.b.localhost:1',
    '127.0.0.1',
    '127.0.0.1:8787',
    '127.255.255.254',
    '[::1]',
    '[::1]:8787',
    'relay.example',
    'RELAY.example.:80',
    'tunnel.example',
    '198.51.100.7:8787',
  ])('answers %s', (host) => {
    expect(onLoopback(host)).toBe(true)
  })

  it.each([
    undefined,
    '',
    ' ',
    '.',
    ':8787',
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.com',
    'evil-localhost',
    'localhostevil',
    '.localhost',
    'a..localhost',
    'localhost..',
    '127.1',
    '127.0.1',
    '0x7f.0.0.1',
    '2130706433',
    '127.0.0.1.1',
    '128.0.0.1',
    '0.0.0.0',
    '192.168.1.5',
    '[::]',
    '[::2]',
    '[2001:db8::1]',
    '[::1',
    '::1',
    '[::1].evil.com',
    '[::1].',
    '[::1]evil.com',
    '[localhost]',
    '[127.0.0.1]',
    '[fe80::1%25lo]',
    'user@localhost',
    'localhost@evil.com',
    'localhost:80@evil.com',
    'localhost:8787:8787',
    'localhost:port',
    'localhost:123456',
    'localhost/evil',
    'localhost#',
    'localhost?x',
    'localhost\\evil.com',
    'localhost, evil.com',
    'localhost evil.com',
    'localhost\tx',
    'localhost\0',
    'évil.localhost',
    'relay.example.evil.com',
    'sub.relay.example',
  ])('refuses %j', (host) => {
    expect(onLoopback(host)).toBe(false)
  })
})

describe('bound to another address', () => {
  it.each([
    '192.168.1.5',
    '192.168.1.5:8787',
    '0.0.0.0',
    '[2001:db8::1]:80',
    '[::]',
    'localhost',
    'relay.example',
  ])('answers %s', (host) => {
    expect(onAll(host)).toBe(true)
  })

  it.each([
    'evil.example',
    '192.168.1.5.evil.com',
    '192.168.1',
    '999.1.1.1',
    '[fe80::1%25lo]',
    '[1.2.3.4]',
    '[dead]',
  ])('refuses %s', (host) => {
    expect(onAll(host)).toBe(false)
  })

  it('answers to the name or address it was bound to', () => {
    expect(hostCheck({ host: 'Box.Lan', allowed: [] })('box.lan:8787')).toBe(true)
    expect(hostCheck({ host: '::1', allowed: [] })('[::1]:8787')).toBe(true)
    expect(hostCheck({ host: '::1', allowed: [] })('192.168.1.5')).toBe(false)
    expect(hostCheck({ host: 'localhost', allowed: [] })('192.168.1.5')).toBe(false)
    expect(hostCheck({ host: '192.168.1.5', allowed: [] })('10.0.0.1')).toBe(true)
  })
})

describe('laws', () => {
  it('every loopback name and address is answered, with any port', () => {
    const address = tuple(octet, octet, octet).map(([a, b, c]) => `127.${a}.${b}.${c}`)
    const name = array(label, { maxLength: 3 }).map((labels) => [...labels, 'LocalHost'].join('.'))
    assert(property(oneof(address, name, constantFrom('[::1]')), port, (host, p) => onLoopback(host + p)))
  })

  it('other addresses are refused when bound to loopback, and answered otherwise', () => {
    const address = oneof(
      ipV4().filter((ip) => !ip.startsWith('127.')),
      ipV6().map((ip) => `[${ip}]`),
    ).filter((host) => new URL(`http://${host}`).hostname !== '[::1]' && host !== '198.51.100.7')
    assert(property(address, port, (host, p) => !onLoopback(host + p) && onAll(host + p)))
  })

  it('a name under a foreign domain is refused, whatever its prefix', () => {
    const prefix = oneof(constantFrom('localhost', '127.0.0.1', '[::1]', 'relay.example'), label)
    const domain = tuple(label, constantFrom('com', 'example', 'lan')).map((labels) => labels.join('.'))
    const glue = constantFrom('.', '@', ':80@', '/', '\\', ':', '#', '%2e', ',')
    const foreign = tuple(prefix, glue, domain, port).map((parts) => parts.join(''))
    assert(property(foreign, (host) => !onLoopback(host) && !onAll(host)))
  })
})
