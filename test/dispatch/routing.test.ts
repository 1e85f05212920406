import { describe, expect, it } from 'vitest'
import { explain, parseExec, parseForward, routesFor } from '../../src/dispatch/routes.js'
import { parseMatch } from '../../src/journal/filter.js'

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
  const shown = routes.map(({ label, match: { text } }) => ({ label, match: text }))

  it('explains every route', () => {
    expect(explain(shown, [], { event: 'issues', action: 'opened' })).toEqual([
      { target: 'http://a.example/', matched: true, why: 'issues.opened matches *' },
      { target: 'push=exec:./deploy.sh', matched: false, why: 'issues.opened does not match push' },
      { target: '*.opened=http://b.example/', matched: true, why: 'issues.opened matches *.opened' },
    ])
    expect(explain(shown.slice(0, 1), ['push'], { event: 'push', action: null })).toEqual([
      { target: 'http://a.example/', matched: false, why: 'push is ignored by push' },
    ])
  })
})
