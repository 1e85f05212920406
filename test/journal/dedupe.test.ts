import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dedupeKey } from '../../src/journal/dedupe.js'

describe('dedupeKey', () => {
  it('is the file format', () => {
    expect(
      dedupeKey({ event: 'push', hookId: '42', deliveryId: '72d3162e-cc78-11e3-81ab-4c9367dc0958' }),
    ).toBe('42 72d3162e-cc78-11e3-81ab-4c9367dc0958')
    expect(dedupeKey({ event: 'push', hookId: '', deliveryId: '72d3162e' })).toBe(' 72d3162e')
  })

  it('knows one from a tunnel by its body, whatever id it claims', () => {
    const restored = { how: 'compact', sha256: 'Jd6hfMrxUIz72JzHvspTjAa-8B6vzToQz6xQCJMiFIc' }
    for (const deliveryId of ['a', 'b'])
      expect(dedupeKey({ event: 'push', hookId: '', deliveryId, restored })).toBe(
        'body:Jd6hfMrxUIz72JzHvspTjAa-8B6vzToQz6xQCJMiFIc',
      )
  })

  it('knows one whose event is not proved by its event too, and one that can come again by its id', () => {
    const restored = { how: 'compact', sha256: 'Jd6h' }
    const of = (more: object, event = 'push', deliveryId = 'a') =>
      dedupeKey({ event, hookId: '', deliveryId, restored: { ...restored, ...more } })
    expect(of({ unproved: true })).toBe('body:Jd6h push')
    expect(of({ unproved: true }, 'issues', 'b')).toBe('body:Jd6h issues')
    expect(of({ repeatable: true }, 'ping', 'b')).toBe('body:Jd6h b')
  })

  it('keeps ids apart, wherever one ends and the other begins', () => {
    const id = fc.string({ unit: fc.constantFrom('a', '"', ',', '\\', '[', '1'), maxLength: 4 })
    fc.assert(
      fc.property(id, id, id, id, (hookId, deliveryId, otherHook, otherDelivery) => {
        const same = hookId === otherHook && deliveryId === otherDelivery
        expect(
          dedupeKey({ event: 'push', hookId, deliveryId }) ===
            dedupeKey({ event: 'push', hookId: otherHook, deliveryId: otherDelivery }),
        ).toBe(same)
      }),
      { numRuns: 2000 },
    )
  })
})
