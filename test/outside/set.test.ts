import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { shopFixture } from '../kit/shop-fixture.js'

const BODY = String.raw`{"id":12345678901234567890,"price":1.0,"e":1e5,"u":"https:\/\/x","c":"caf\u00e9", "2":1,"1":[ 2 , {"note":"b"}],
  "note":"a","note":"last", "deep":{"list":[[1],[{"a":1.50}]]}}`

/** A pull request in the manner of a code host, with spellings of its own. */
const PULL = String.raw`{"number": 2, "size":1.0, "pull_request": {"number":2,"big":12345678901234567890,
  "html_url":"https:\/\/github.com\/octo\/demo\/pull\/2", "note":"see \/pull\/2"}, "2":0, "1":0}`

/** Sends a body with the edit, and returns what arrived and what the command says. */
async function sent(body: string, ...flags: readonly string[]) {
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_SHOP_SECRET: 's3cret' } })
  await using target = await receiver()
  writeFileSync(path.join(here.cwd, 'f.json'), JSON.stringify(shopFixture(body)))
  const argv = ['replay', 'f.json', '--source', 'shop', ...flags, '--to', target.url]
  const ran = await here.runWith({ env: { RELAY_SOURCES: 'shop=shopify' } }, ...argv)
  return { code: ran.code, err: ran.err, bodies: target.received.map((each) => each.body.toString()) }
}

describe('--set', () => {
  it.each([
    ['note="z"', BODY.replace('"last"', '"z"')],
    ['price=1', BODY.replace('"price":1.0', '"price":1')],
    ['deep.list[1][0].a=2', BODY.replace('1.50', '2')],
    ['deep.list[0][1]={"b":1}', BODY.replace('[[1]', '[[1,{"b":1}]')],
    ['deep.more=[1]', BODY.replace('}]]}', '}]],"more":[1]}')],
  ])('%s changes no other byte, and so has nothing to say of any', async (edit, wanted) => {
    const { code, err, bodies } = await sent(BODY, '--set', edit)
    expect([code, bodies]).toEqual([0, [wanted]])
    expect(err).not.toContain('changed')
  })

  it('leaves the line ends of SendGrid, which end each of its bodies', async () => {
    const body =
      '[{"email":"a@example.com","event":"open"},\r\n{"email":"b@example.com","event":"click"}]\r\n'
    const { code, bodies } = await sent(body, '--set', '1.event=bounce')
    expect([code, bodies]).toEqual([0, [body.replace('click', 'bounce')]])
  })

  it('names the members that changed with the one that it sets, and changes no byte of all others', async () => {
    const { code, err, bodies } = await sent(PULL, '--set', 'pull_request.number=7')
    const wanted = PULL.replace('{"number": 2', '{"number": 7')
      .replace('{"number":2', '{"number":7')
      .replace(
        String.raw`"https:\/\/github.com\/octo\/demo\/pull\/2"`,
        '"https://github.com/octo/demo/pull/7"',
      )
    expect([code, bodies]).toEqual([0, [wanted]])
    expect(err).toContain('--set also changed number, pull_request.html_url\n')
  })

  it('changes a field of a form, and no byte of the others', async () => {
    const form = 'token=a%2fb&text=hello+you&response_url=https%3a%2f%2Fx'
    const { code, bodies } = await sent(form, '--set', 'text=bye')
    expect([code, bodies]).toEqual([0, ['token=a%2fb&text=bye&response_url=https%3a%2f%2Fx']])
  })

  it('changes a member of the JSON in a form, and no byte of the other fields', async () => {
    const form = 'payload=%7b%22a%22%3A1.0%2C%22b%22%3A1%7D&x=a%2fb'
    const { code, bodies } = await sent(form, '--set', 'b=2')
    expect([code, bodies]).toEqual([0, ['payload=%7b%22a%22%3A1.0%2C%22b%22%3A2%7D&x=a%2fb']])
  })
})
