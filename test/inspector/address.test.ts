import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addressOf,
  formatQuery,
  isFiltered,
  parseAddress,
  parseQuery,
  type View,
} from '../../src/inspector/address.js'

const VIEWS: readonly (readonly [string, View])[] = [
  ['/inspect/', { page: 'list', query: {} }],
  ['/inspect/?event=push&status=failed', { page: 'list', query: { event: 'push', status: 'failed' } }],
  ['/inspect/deliveries/12?text=a+b', { page: 'delivery', n: 12, query: { text: 'a b' } }],
  ['/inspect/deliveries/12/compare/9', { page: 'compare', n: 12, other: 9, query: {} }],
  ['/inspect/refused', { page: 'refused' }],
  ['/inspect/refused/3', { page: 'refused', id: 3 }],
  ['/inspect/state', { page: 'state' }],
]

describe('the addresses of the inspector', () => {
  it.each(VIEWS)('%s', (address, view) => {
    const { pathname, search } = new URL(address, 'http://localhost')
    expect(parseAddress(pathname, search)).toEqual(view)
    expect(addressOf(view)).toBe(address)
  })

  it.each([
    '/inspect/deliveries/0',
    '/inspect/deliveries/01',
    '/inspect/deliveries/x',
    '/inspect/deliveries/9007199254740993',
    '/inspect/deliveries/1/compare',
    '/inspect/deliveries/1/compare/2/3',
    '/inspect/refused/x',
    '/inspect/state/1',
    '/inspect/other',
  ])('%s is none', (path) => {
    expect(parseAddress(path, '')).toBeUndefined()
  })

  it('reads the filters that it wrote, whatever they hold', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 }).map((value) => value.trim())
    const law = fc.property(fc.record({ event: text, text, since: text }, { requiredKeys: [] }), (query) => {
      const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''))
      expect(parseQuery(formatQuery(query))).toEqual(given)
    })
    fc.assert(law)
  })

  it('leaves out empty and unknown filters', () => {
    expect(parseQuery('?event=&text=x&limit=9&key=1')).toEqual({ text: 'x' })
    expect([isFiltered({}), isFiltered({ before: '9' }), isFiltered({ text: 'x' })]).toEqual([
      false,
      false,
      true,
    ])
  })
})
