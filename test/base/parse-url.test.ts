import { expect, it } from 'vitest'
import { parseUrl } from '../../src/base/address.js'

it.each([
  ['http://a.example/b', undefined, 'http://a.example/b'],
  ['/c?d', 'http://a.example/b', 'http://a.example/c?d'],
  ['/c', undefined, undefined],
  ['', undefined, undefined],
  ['http://', undefined, undefined],
  ['http://a.example:65536', undefined, undefined],
])('reads %j from %j', (text, base, href) => {
  expect(parseUrl(text, base)?.href).toBe(href)
})

it('reads an address with other letters also when it has read many others before', () => {
  for (let n = 0; n < 20_000; n++) parseUrl(`http://host-${n}.example/`)
  expect(parseUrl('http://bücher.example/')?.hostname).toBe('xn--bcher-kva.example')
})
