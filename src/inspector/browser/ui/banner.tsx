import { Icon } from '../../view/icon.js'
import { connectionStore } from '../data/live.js'
import { accessStore, keyStore } from '../data/session.js'
import { useStore } from '../model/store.js'

/** What keeps the page from working as usual, if anything does. */
export function Banner() {
  const access = useStore(accessStore)
  const connection = useStore(connectionStore)
  const key = useStore(keyStore)
  if (access === 'lost')
    return (
      <p class="banner banner-warn" role="alert">
        This page is no longer open to relay, because relay was started again. Run <code>relay inspect</code>{' '}
        in a terminal to open it.
      </p>
    )
  if (connection === 'away')
    return (
      <p class="banner" role="status">
        <Icon name="ring" />
        relay stopped; waiting for it
      </p>
    )
  if (key === null)
    return (
      <p class="banner" role="status">
        This tab can only read. Run <code>relay inspect</code> in a terminal to open one that can forward and
        edit.
      </p>
    )
  return null
}

/** Whether the page is live, at the end of the bar. */
export function ConnectionState() {
  const connection = useStore(connectionStore)
  const access = useStore(accessStore)
  const state = access === 'lost' ? 'lost' : connection
  return <span class={`connection connection-${state}`}>{WORDS[state]}</span>
}

const WORDS = { connecting: 'connecting', live: 'live', away: 'waiting', lost: 'closed' } as const
