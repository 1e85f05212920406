import { consent, type ConsentButton } from '../../src/testing/consent.js'

/** What came back to the relay's callback. */
export interface SignedIn {
  readonly code: string
  readonly state: string
  /** Where the browser ended up. */
  readonly location: string
}

/** Signs `userId` in at a relay whose code host is a sandbox, as a browser would: redirects, consent form, cookie. */
export async function signIn(relayUrl: string, userId: string): Promise<SignedIn> {
  return signInAt(`${relayUrl}/auth/sandbox?userId=${encodeURIComponent(userId)}`)
}

/** The same from the address where signing in begins; the person presses `button`. */
export async function signInAt(address: string, button?: ConsentButton): Promise<SignedIn> {
  return finishSignIn(await beginSignIn(address), button)
}

/** A sign-in up to the consent page: its address, and the cookie the browser was given on the way. */
export interface BegunSignIn {
  readonly authorize: string
  readonly cookie: string
}

export async function beginSignIn(address: string): Promise<BegunSignIn> {
  const { headers } = await fetch(address, { redirect: 'manual' })
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';')
  return { authorize: headers.get('location') ?? '', cookie }
}

export async function finishSignIn(
  { authorize, cookie }: BegunSignIn,
  button?: ConsentButton,
): Promise<SignedIn> {
  const callback = await consent(authorize, button)
  const back = await fetch(callback, { headers: { cookie }, redirect: 'manual' })
  const { searchParams } = new URL(callback)
  return {
    code: searchParams.get('code') ?? '',
    state: searchParams.get('state') ?? '',
    location: back.headers.get('location') ?? '',
  }
}
