import './keep-fetch.js'

export type { Fixture } from '../fixtures/fixture.js'
export type { DeliveryFilter, TestAttempt, TestDelivery, WaitOptions } from './deliveries.js'
export type { FixtureOfOptions, LoadFixtureOptions, NamedFixture } from './fixtures.js'
export { fixtureOf, loadFixture, loadFixtures } from './fixtures.js'
export { signedRequest, type SignedRequestOptions, TEST_SECRET } from './signed-request.js'
export { type DeliverOptions, startRelay, type TestRelay, type TestRelayOptions } from './start-relay.js'
export { startSandbox, type TestSandbox, type TestSandboxOptions } from './start-sandbox.js'
