/** Why a request got no response that can be used. The message is in words for people, and quotes neither request nor response. */
export class NetFailure extends Error {
  override readonly name: string = 'NetFailure'
}
