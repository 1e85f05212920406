import './keep-fetch.js'

export type { Fixture } from '../replay/fixture.js'
export type { NamedFixture } from '../replay/load.js'
export {
  type DeliverOptions,
  type DeliveryFilter,
  startRelay,
  type TestAttempt,
  type TestDelivery,
  type TestRelay,
  type TestRelayOptions,
  type WaitOptions,
} from './relay.js'
export {
  fixtureOf,
  type FixtureOfOptions,
  loadFixture,
  type LoadFixtureOptions,
  loadFixtures,
  signedRequest,
  type SignedRequestOptions,
  TEST_SECRET,
} from './request.js'
export { startSandbox, type TestSandbox, type TestSandboxOptions } from './sandbox.js'
