import { describe, expect, it } from 'vitest'
import { parseExec, parseForward, shortNames } from '../../src/dispatch/routes.js'

const named = (...routes: ReturnType<typeof parseForward>[]): string[] => [...shortNames(routes).values()]

describe('the short names of targets', () => {
  it('are those given, else host and port, or the first word of a command', () => {
    expect(
      named(
        parseForward('app=http://localhost:3000/hooks'),
        parseForward('push=https://u:canary@example.com/x?token=canary'),
        parseExec('push=A=1 /usr/local/bin/deploy.sh --now'),
      ),
    ).toEqual(['app', 'example.com', 'deploy.sh'])
  })

  it('are longer where two targets would share one', () => {
    expect(
      named(
        parseForward('http://localhost:3000/a'),
        parseForward('http://localhost:3000/b'),
        parseExec('./x.sh 1'),
        parseExec('push=./x.sh'),
        parseExec('ping=./x.sh'),
      ),
    ).toEqual(['localhost:3000/a', 'localhost:3000/b', './x.sh 1', 'push=exec:./x.sh', 'ping=exec:./x.sh'])
  })

  it('are those given where a target is listed twice', () => {
    expect(named(parseForward('app=http://a.example'), parseForward('http://a.example'))).toEqual(['app'])
  })

  it('may be given to several routes', () => {
    expect(
      named(parseForward('app=push=http://a.example'), parseForward('app=fork=http://a.example')),
    ).toEqual(['app', 'app'])
  })
})
