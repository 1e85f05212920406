import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  allOpen,
  initiallyOpen,
  parseTree,
  pathOf,
  visibleNodes,
} from '../../../src/inspector/browser/model/json-tree.js'
import { layOut } from '../../../src/json/text.js'
import { moveInTree } from '../../../src/inspector/browser/model/tree-keys.js'

const TEXT = '{"a": [1, {"b c": null}], "d": {}, "e": "x\\"y", "n": 12345678901234567890}'

describe('the tree of JSON text', () => {
  const tree = parseTree(TEXT)
  const shown = (indexes: Iterable<number>): string[] =>
    [...indexes].map((index) => {
      const node = tree.nodes[index]
      return node ? `${pathOf(tree, node)} ${node.kind} ${TEXT.slice(node.start, node.end)}` : ''
    })

  it('lists every value by its path, as it is written', () => {
    expect(shown(tree.nodes.keys())).toEqual([
      ` object ${TEXT}`,
      'a array [1, {"b c": null}]',
      'a[0] number 1',
      'a[1] object {"b c": null}',
      'a[1]["b c"] literal null',
      'd object {}',
      'e string "x\\"y"',
      'n number 12345678901234567890',
    ])
  })

  it('shows what is unfolded, and nothing inside what is folded', () => {
    expect(visibleNodes(tree, new Set())).toEqual([0])
    expect(visibleNodes(tree, new Set([0]))).toEqual([0, 1, 5, 6, 7])
    // What is unfolded inside something folded waits until that is unfolded.
    expect(visibleNodes(tree, new Set([0, 3]))).toEqual([0, 1, 5, 6, 7])
    expect(visibleNodes(tree, allOpen(tree))).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  it('unfolds level by level at first, as far as there is room', () => {
    expect([...initiallyOpen(tree, 5)]).toEqual([0])
    expect([...initiallyOpen(tree, 7)]).toEqual([0, 1])
    expect([...initiallyOpen(tree, 100)]).toEqual([0, 1, 3])
    expect([...initiallyOpen(tree, 1)]).toEqual([0])
    expect([...initiallyOpen(parseTree('"alone"'), 100)]).toEqual([])
  })

  it('has one node for each value of any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        const { nodes } = parseTree(text)
        expect(nodes.length).toBe(countOf(value))
        for (const { start, end } of nodes) expect(() => JSON.parse(text.slice(start, end))).not.toThrow()
        expect(nodes[0]?.after).toBe(nodes.length)
      }),
    )
  })

  it('moves, folds and unfolds by keys as trees do', () => {
    const open = new Set([0, 1])
    const rows = visibleNodes(tree, open)
    const move = (cursor: number, key: string) => moveInTree(tree, open, rows, cursor, key)
    expect(move(0, 'ArrowDown')).toEqual({ cursor: 1 })
    expect(move(0, 'ArrowUp')).toEqual({ cursor: 0 })
    expect(move(7, 'ArrowDown')).toEqual({ cursor: 7 })
    expect(move(3, 'ArrowDown')).toEqual({ cursor: 5 })
    expect(move(3, 'ArrowRight')).toEqual({ toggle: 3 })
    expect(move(1, 'ArrowRight')).toEqual({ cursor: 2 })
    expect(move(2, 'ArrowRight')).toEqual({ cursor: 2 })
    expect(move(2, 'ArrowLeft')).toEqual({ cursor: 1 })
    expect(move(1, 'ArrowLeft')).toEqual({ toggle: 1 })
    expect(move(5, 'Enter')).toEqual({ cursor: 5 })
    expect(move(3, ' ')).toEqual({ toggle: 3 })
    expect(move(3, 'Home')).toEqual({ cursor: 0 })
    expect(move(3, 'End')).toEqual({ cursor: 7 })
    expect(move(3, 'x')).toBeUndefined()
  })
})

describe('laying out JSON', () => {
  it('adds white space and changes nothing else', () => {
    expect(layOut('{"a":[1,{"b":1.0}],"c":{},"d":[],"e":"\\u0041, {"}')).toBe(
      [
        '{',
        '  "a": [',
        '    1,',
        '    {',
        '      "b": 1.0',
        '    }',
        '  ],',
        '  "c": {},',
        '  "d": [],',
        '  "e": "\\u0041, {"',
        '}',
      ].join('\n'),
    )
  })

  it('agrees with JSON.stringify for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(layOut(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2))
      }),
    )
  })
})

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, each) => sum + countOf(each), 1)
}
