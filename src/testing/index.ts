import './keep-fetch.js'

export type { Fixture, NamedFixture } from '../replay/fixture.js'
export {
  type DeliverOptions,
  startRelay,
  type TestRelay,
  type TestRelayOptions,
  type TestSource,
} from './relay.js'
export {
  events,
  fixtureOf,
  type FixtureOfOptions,
  loadFixture,
  type LoadFixtureOptions,
  loadFixtures,
  publicKeyOf,
  signedRequest,
  type SignedRequestOptions,
  TEST_SECRET,
} from './request.js'
export { type StartedSandbox, startSandbox, type TestSandbox, type TestSandboxOptions } from './sandbox.js'
export type {
  DeliveryFilter,
  NothingMoreOptions,
  TestAttempt,
  TestDelivery,
  TestTarget,
  WaitOptions,
} from './waits.js'
export type { Until } from './watch.js'
