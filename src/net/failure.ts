/**
 * Error for a request without a usable response. The message is written for people, and quotes neither request nor
 * response.
 */
export class NetFailure extends Error {
  override readonly name: string = 'NetFailure'
}
