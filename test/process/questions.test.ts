import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { addressOf, register } from '../kit/pages.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { type Place, place } from '../kit/place.js'

const SIZE = { width: 160, height: 60 }
/** Ctrl-C ends the command, not the script. */
const SETUP = 'trap : INT; relay setup; echo "exit $?"'
const NO_BROWSER = SETUP.replace('setup', 'setup --no-browser')
const OAUTH_APP = SETUP.replace('setup', 'setup --oauth-app --no-browser')
const NO_CLIENT = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }

/** The client that the profile has. */
const client = async (here: Place): Promise<string> =>
  (await here.run('config', '--json')).out.match(/Iv23\w+/)?.[0] ?? ''

/** A place whose user has registered an App. */
async function withClient(): Promise<Place> {
  const here = await place({ env: NO_CLIENT })
  const setup = here.start('setup', '--no-browser')
  await register(await addressOf(setup))
  expect((await setup.ended).code).toBe(0)
  return here
}

describeWith('tmux', 'an answer, or Ctrl-C, at a question of relay setup', () => {
  it('keeps the client that it would replace', async () => {
    await using here = await withClient()
    const before = await client(here)
    await using pane = new Pane(SETUP, { ...SIZE, env: here.env })
    await pane.shows(/Replace it\? \[y\/N\]/)
    pane.press('C-c')
    await pane.shows(/exit 130/)
    expect(await client(here)).toBe(before)
  })

  it('replaces it after a yes, and after no other answer', async () => {
    await using here = await withClient()
    const before = await client(here)
    for (const answer of ['n', '']) {
      await using pane = new Pane(NO_BROWSER, { ...SIZE, env: here.env })
      await pane.shows(/Replace it\? \[y\/N\]/)
      pane.press(answer, 'Enter')
      await pane.shows(/Nothing was changed[^]*exit 130/)
    }
    expect(await client(here)).toBe(before)
    await using pane = new Pane(NO_BROWSER, { ...SIZE, env: here.env })
    await pane.shows(/Replace it\? \[y\/N\]/)
    pane.press('y', 'Enter')
    await pane.shows(/Ctrl-C cancels/)
    await register(/http:\S+\/setup\/\S+/.exec(pane.unbroken())?.[0] ?? '')
    await pane.shows(/exit 0/)
    expect(await client(here)).not.toBe(before)
  })

  it("asks at a GitLab for an administrator's token, and goes on by hand after another", async () => {
    await using here = await place({ host: 'gitlab', env: NO_CLIENT })
    const { id, secret } = here.gitlab.state.oauth.client
    await using pane = new Pane(NO_BROWSER, { ...SIZE, env: here.env })
    await pane.shows(/Access token of an administrator, with the scope api \(not shown; Enter for none\)/)
    pane.press(here.gitlab.token(), 'Enter')
    await pane.shows(/Everybody else registers it on its page/)
    await pane.shows(/Confidential +yes\n +Scopes +api/)
    expect(pane.unbroken()).toContain(`${here.gitlab.url}/-/user_settings/applications\n`)
    await pane.shows(/Then save it there, and enter both here/)
    pane.press(id, 'Enter')
    await pane.shows(/Client secret/)
    pane.press(secret, 'Enter')
    await pane.shows(/exit 0/)
    expect((await here.run('config', '--reveal', 'clientId')).out.trim()).toBe(id)
  })

  it('leaves nothing behind without an answer', async () => {
    const home = emptyFolder()
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://127.0.0.1:9' }
    await using pane = new Pane(SETUP, { ...SIZE, env })
    await pane.shows(/Access token/)
    pane.press('C-c')
    await pane.shows(/exit 130/)
    expect(readdirSync(home)).toEqual([])
  })

  it('is the secret of an OAuth app, which the terminal does not show', async () => {
    const registered = { id: 'by-hand', secret: 'typed-canary-secret' }
    await using here = await place({ env: NO_CLIENT, sandbox: { client: registered } })
    const options = { ...SIZE, env: here.env }
    {
      await using pane = new Pane(OAUTH_APP, options)
      await pane.shows(/Client id:/)
      pane.press('C-c')
      await pane.shows(/exit 130/)
    }
    {
      await using pane = new Pane(OAUTH_APP, options)
      await pane.shows(/Client id:/)
      pane.press(registered.id, 'Enter')
      await pane.shows(/Client secret \(not shown\):/)
      pane.press('C-c')
      await pane.shows(/exit 130/)
    }
    expect(readdirSync(here.home)).toEqual([])
    await using pane = new Pane(OAUTH_APP, options)
    await pane.shows(/Client id:/)
    for (const value of [
      /Homepage URL +http:\/\/127\.0\.0\.1:8787$/m,
      /Authorization callback URL +http:\/\/127\.0\.0\.1:8787\/auth\/sandbox\/callback$/m,
    ])
      expect(pane.text()).toMatch(value)
    expect(pane.text()).toContain(`\n  ${here.sandbox.url}/`)
    pane.press(registered.id, 'Enter')
    await pane.shows(/Client secret \(not shown\):/)
    pane.press(registered.secret, 'Enter')
    await pane.shows(/exit 0/)
    expect(pane.text()).not.toContain('typed-canary')
    expect(pane.text()).toContain(`client id by-hand (setup); ${here.sandbox.url} knows it`)
    expect((await here.run('config', '--reveal', 'clientSecret')).out).toBe(`${registered.secret}\n`)
  })
})
