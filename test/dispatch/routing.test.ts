import { describe, expect, it } from 'vitest'
import { parseExec, parseForward } from '../../src/dispatch/route.js'
import { explain, routesFor } from '../../src/dispatch/routing.js'
import { parseMatch } from '../../src/journal/match.js'

const all = parseForward('http://a.example/')
const push = parseExec('push=./deploy.sh')
const opened = parseForward('*.opened=http://b.example/')
const routes = [all, push, opened]

describe('routesFor', () => {
  it('gives every route that matches, in order', () => {
    expect(routesFor(routes, [], { event: 'push', action: null })).toEqual([all, push])
    expect(routesFor(routes, [], { event: 'issues', action: 'opened' })).toEqual([all, opened])
    expect(routesFor([], [], { event: 'push', action: null })).toEqual([])
  })

  it('gives none for what is ignored', () => {
    const ignore = [parseMatch('check_run'), parseMatch('issues.*')]
    expect(routesFor(routes, ignore, { event: 'issues', action: 'opened' })).toEqual([])
    expect(routesFor(routes, ignore, { event: 'push', action: null })).toEqual([all, push])
  })
})

describe('explain', () => {
  it('explains every route', () => {
    expect(explain(routes, [], { event: 'issues', action: 'opened' })).toEqual([
      { route: all, matched: true, why: 'issues.opened matches *' },
      { route: push, matched: false, why: 'issues.opened does not match push' },
      { route: opened, matched: true, why: 'issues.opened matches *.opened' },
    ])
    expect(explain([all], [parseMatch('push')], { event: 'push', action: null })).toEqual([
      { route: all, matched: false, why: 'push is ignored by push' },
    ])
  })
})
